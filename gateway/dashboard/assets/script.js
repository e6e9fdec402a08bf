// Keeps a page fresh: when the state has changed, it is loaded again and its content exchanged, unless somebody is using
// what would be exchanged. Without this script everything works; the page is then as old as it says.
"use strict";

const content = document.getElementById("content");
const REST = 5;               // times as long as a refresh took nothing is asked for
const SILENCE_MS = 3000;      // the source comes back twice in that time

function inUse() {
  const active = document.activeElement;
  return document.hidden || content.querySelector("details[open]") !== null
    || (content.contains(active) && active.matches("input, select, textarea, button"))
    || !getSelection().isCollapsed;
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = fresh.getElementById("content");
  if (next === null || inUse()) return;
  const note = content.querySelector(".note");        // what was just done is told once, and stays until one goes on
  content.replaceChildren(...next.childNodes);
  if (note !== null) content.querySelector("h1").after(note);
  for (const part of ["header", "footer"]) {
    document.querySelector(part).replaceChildren(...fresh.querySelector(part).childNodes);
  }
}

if (content !== null && new URLSearchParams(location.search).get("note") !== null) {
  const address = new URL(location.href);     // what was just done is told once
  address.searchParams.delete("note");
  history.replaceState(null, "", address);
}

if (content !== null && content.dataset.live && location.pathname !== "/act") {
  let seen = content.dataset.state;
  let busy = false;
  const source = new EventSource(content.dataset.live);
  const lost = () => {
    const age = document.getElementById("age");
    if (source.readyState !== EventSource.OPEN && Date.now() - heard > SILENCE_MS) {
      age.textContent = `${Math.round((Date.now() - heard) / 1000)} s old: this node does not answer`;
    }
  };
  let heard = Date.now();
  source.addEventListener("age", (event) => {
    heard = Date.now();
    document.getElementById("age").textContent = event.data;
  });
  setInterval(lost, 1000);
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

const events = document.getElementById("events");
const EVENTS_MAX = 200;

if (events !== null) {
  const source = new EventSource("/events");
  for (const type of events.dataset.types.split(" ")) {
    source.addEventListener(type, (event) => {
      const line = document.createElement("li");
      line.textContent = `${new Date().toLocaleTimeString()} ${event.data}`;    // never as HTML
      events.prepend(line);
      while (events.children.length > EVENTS_MAX) events.lastElementChild.remove();
    });
  }
}
