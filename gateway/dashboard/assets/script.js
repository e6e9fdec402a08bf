// Keeps a page fresh: when the state has changed, it is loaded again and its content exchanged, unless somebody is using
// what would be exchanged. Without this script everything works; the page is then as old as it says.
"use strict";

const content = document.getElementById("content");
const stale = document.getElementById("stale");
const HALF_LINE = 15;         // letters of a head and its cell that fit into half of a narrow screen
const REST = 5;               // times as long as a refresh took nothing is asked for
const SILENCE_MS = 1600;      // three times what the source takes at most, also to come back
const LOOK_MS = 200;
const AGAIN_MS = 2000;        // after which a source that the browser has given up is opened again

function inUse() {
  const active = document.activeElement;
  return document.hidden || content.querySelector("details[open], .chart:hover, :focus-visible") !== null
    || document.querySelector("nav:popover-open") !== null
    || (content.contains(active) && active.matches("input, select, textarea, button")) || active.matches("header input")
    || !getSelection().isCollapsed;
}

// Adds the time of day, in the zone of the visitor, to what says how long ago something was.
function localTimes(root) {
  for (const element of root.querySelectorAll("time[data-ms]")) {
    const time = new Date(Number(element.dataset.ms));
    if (Number.isNaN(time.getTime())) continue;         // beyond what a browser knows
    const today = time.toDateString() === new Date().toDateString();
    const shown = today ? time.toLocaleTimeString([], { hour12: false }) : time.toLocaleString([], { hour12: false });
    if (element.title === "") element.textContent += element.dataset.since ? `, since ${shown}` : ` (${shown})`;
    element.title = time.toISOString();
  }
}

// Returns whether a cell needs a line of its own on a narrow screen.
function isLong(cell) {
  return cell.previousElementSibling === null || cell.dataset.head.length + cell.textContent.length > HALF_LINE
    || (!cell.classList.contains("n") && cell.querySelector("svg, form, code") !== null);
}

// Gives each cell the head of its column, which narrow screens show beside it, and marks those that have a line of their
// own there (style.css): long ones, and those that would otherwise be alone in half a line.
function label(root) {
  for (const table of root.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.replace(" ↓", ""));
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, at) => { cell.dataset.head = heads[at] ?? ""; });
      const cells = [...row.children].filter((cell) => cell.hasChildNodes());       // the others are not shown
      let half = false;             // a line is half full
      cells.forEach((cell, at) => {
        const alone = !half && (at + 1 === cells.length || isLong(cells[at + 1]));
        const whole = isLong(cell) || alone;
        cell.classList.toggle("long", whole);
        half = !whole && !half;
      });
    }
    table.classList.add("labelled");
  }
}

// Says that what is seen is old, and why, until `why` is null.
function setStale(why) {
  document.body.classList.toggle("stale", why !== null);
  stale.hidden = why === null;
  if (why === null) return;
  const text = document.getElementById("stale-why");
  if (text.textContent !== why) text.textContent = why;
  for (const link of stale.querySelectorAll("a")) {
    link.href = `//${link.dataset.node}${location.pathname}${location.search}`;
  }
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = fresh.getElementById("content");
  if (next === null || inUse()) return;
  const note = content.querySelector(".note");        // what was just done is told once, and stays until one goes on
  const nodes = document.importNode(next, true);
  for (const chart of content.querySelectorAll("figure.chart")) {       // which charts.js keeps fresh
    const place = nodes.querySelector(`#${CSS.escape(chart.id)}`);
    if (place !== null && place.dataset.figures === chart.dataset.figures) place.replaceWith(chart);
  }
  localTimes(nodes);
  label(nodes);
  content.replaceChildren(...nodes.childNodes);
  if (note !== null) content.querySelector("h1").after(note);
  for (const part of ["header", "footer"]) {
    const place = document.querySelector(part);         // the keyboard does not lose its place there
    if (place.querySelector(":focus-visible") === null) place.replaceChildren(...fresh.querySelector(part).childNodes);
  }
}

if (content !== null) {
  localTimes(content);
  label(content);
}

if (content !== null && new URLSearchParams(location.search).get("note") !== null) {
  const address = new URL(location.href);     // what was just done is told once
  address.searchParams.delete("note");
  history.replaceState(null, "", address);
}

if (content !== null && content.dataset.live && location.pathname !== "/act") {
  let seen = content.dataset.state;
  let busy = false;
  let heard = Date.now();
  let source = null;
  let opened = 0;

  function open() {
    opened = Date.now();
    source = new EventSource(content.dataset.live);
    source.addEventListener("age", (event) => {
      const known = JSON.parse(event.data);
      heard = Date.now();
      document.getElementById("age").textContent = known.age;
      setStale(known.stale);
    });
    source.onmessage = async (event) => {
      if (busy || event.data === seen || inUse()) return;
      busy = true;
      const began = Date.now();
      try {
        await refresh();
        seen = event.data;
      } catch {
        // the node is away: the source comes back when it does
      }
      setTimeout(() => { busy = false; }, REST * (Date.now() - began));
    };
  }

  open();
  setInterval(() => {
    const silence = Date.now() - heard;
    if (silence > SILENCE_MS) {
      setStale(`this node does not answer: what you see is ${Math.round(silence / 1000)} s old`);
      if (source.readyState === EventSource.CLOSED && Date.now() - opened > AGAIN_MS) open();
    }
  }, LOOK_MS);
}

const events = document.getElementById("events");
const EVENTS_MAX = 200;
const FAILURES = new Set(["DEAD", "EXPIRED", "TTL", "LATER", "DROP", "FAILI"]);

// Returns a line of an event, never as HTML: when it came, its type, and the rest.
function eventLine(type, data) {
  const line = document.createElement("li");
  const [time, name, rest] = ["time", "b", "span"].map((tag) => document.createElement(tag));
  time.textContent = new Date().toLocaleTimeString([], { hour12: false });
  name.textContent = type;
  rest.textContent = data.startsWith(`${type} `) ? data.slice(type.length + 1) : data;
  line.append(time, " ", name, " ", rest);
  line.classList.toggle("bad", FAILURES.has(type));
  return line;
}

if (events !== null) {
  const source = new EventSource("/events");
  const wanted = document.getElementById("events-with");
  const pause = document.getElementById("events-pause");
  const empty = document.getElementById("no-events");
  const quiet = empty.textContent;
  const choose = (line) => { line.hidden = !line.textContent.includes(wanted.value.trim()); };
  // Says why no line is seen, as long as none is.
  function explain() {
    const lines = [...events.children];
    empty.hidden = lines.some((line) => !line.hidden);
    if (empty.hidden) return;
    if (source.readyState === EventSource.CLOSED) {
      empty.textContent = "This node sends no events: you may lack the right to hear them, or too many clients are listening. "
        + "Load the page again to try once more.";
    } else empty.textContent = lines.length === 0 ? quiet : `None of the last ${lines.length} events has this in its line.`;
  }
  let paused = false;
  let missed = 0;               // events while it is paused, which are not shown later either
  wanted.addEventListener("input", () => {
    [...events.children].forEach(choose);
    explain();
  });
  source.addEventListener("error", explain);
  pause.addEventListener("click", () => {
    paused = !paused;
    missed = 0;
    pause.setAttribute("aria-pressed", paused);
    pause.textContent = paused ? "Go on" : "Pause";
  });
  for (const type of events.dataset.types.split(" ")) {
    source.addEventListener(type, (event) => {
      if (paused) {
        missed += 1;
        pause.textContent = `Go on, ${missed} not shown`;
        return;
      }
      const line = eventLine(type, event.data);
      choose(line);
      events.prepend(line);
      while (events.children.length > EVENTS_MAX) events.lastElementChild.remove();
      explain();
    });
  }
}
