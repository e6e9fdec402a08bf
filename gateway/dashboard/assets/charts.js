// Draws the charts of a page with uPlot: axes, the figures under the pointer, the colours of the page, light and dark.
// A chart stays when the page is made fresh (script.js); its figures are asked for again when a new row is due.
"use strict";

(() => {
  const HEIGHT = 168;
  const REST_MS = { min: 2000, max: 60000 };
  const LEAST_S = 60;               // of time in a chart
  const plots = new Map();          // figure -> uPlot
  const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
  const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

  const shown = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });
  function short(value) {
    const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const step = steps.find(([least]) => Math.abs(value) >= least);
    return step ? `${shown(value / step[0], 1)}${step[1]}` : shown(value, value < 10 ? 2 : 0);
  }
  function amount(value, unit) {
    if (value === null || value === undefined) return "-";
    if (unit === "rate") return `${short(value)}/s`;
    if (unit === "ms") return `${shown(value, value < 10 ? 1 : 0)} ms`;
    if (unit === "percent") return `${shown(value, 0)}%`;
    if (unit === "seconds") {
      if (value > 0 && value < 1) return amount(value * 1000, "ms");
      if (value < 120) return `${shown(value, value < 10 ? 1 : 0)} s`;
      return value < 7200 ? `${shown(value / 60, 0)} min` : `${shown(value / 3600, 1)} h`;
    }
    if (unit === "bytes") {
      let at = 0;
      for (; value >= 1000 && at < BYTES.length - 1; at += 1) value /= 1024;
      return `${shown(value, at ? 1 : 0)} ${BYTES[at]}`;
    }
    return short(value);
  }

  function clock(seconds, step, withDay) {
    const time = new Date(seconds * 1000);
    const parts = { hour: "2-digit", minute: "2-digit", hour12: false };
    if (step < 60) parts.second = "2-digit";
    if (withDay) Object.assign(parts, { weekday: "short", day: "numeric" });
    return time.toLocaleString([], parts);
  }

  const colour = (element, property) => getComputedStyle(element)[property];

  function create(figure, rows) {
    const place = figure.querySelector(".plot");
    const { unit } = figure.dataset;
    const labels = figure.dataset.labels.split("|");
    const inks = [...figure.querySelectorAll(".legend i")].map((line) => colour(line, "backgroundColor"));
    const faint = colour(figure.querySelector("small"), "color");
    const grid = { stroke: colour(figure, "borderTopColor"), width: 1 };
    const when = figure.querySelector("small");
    const values = [...figure.querySelectorAll(".legend b")];
    const days = rows.times.at(-1) - rows.times[0] > 2 * 86400;
    place.replaceChildren();
    return new uPlot({
      width: place.clientWidth, height: HEIGHT, legend: { show: false },
      cursor: { sync: { key: "page" }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
      series: [{}, ...labels.map((label, at) => ({
        label, stroke: inks[at], width: 1.75, points: { show: false }, fill: at ? undefined : `color-mix(in srgb, ${inks[at]} 12%, transparent)`,
      }))],
      axes: [
        { stroke: faint, grid, ticks: grid, space: 64, size: 32, values: (_, splits, __, ___, step) =>
          splits.map((split) => days ? new Date(split * 1000).toLocaleDateString([], { weekday: "short", day: "numeric" })
            : clock(split, step, false)) },
        { stroke: faint, grid, ticks: grid, space: 32, size: 60, incrs: unit === "bytes" ? POWERS : undefined,
          values: (_, splits) => splits.map((split) => amount(split, unit)) },
      ],
      hooks: { setCursor: [(plot) => {
        values.forEach((value, line) => {
          const row = plot.data[line + 1];
          value.textContent = amount(row[plot.cursor.idx ?? newest(row)], unit);
        });
        when.textContent = plot.cursor.idx === null || plot.cursor.idx === undefined ? "" : clock(plot.data[0][plot.cursor.idx], 1, days);
      }] },
    }, data(figure, rows), place);
  }

  const newest = (row) => row.findLastIndex((value) => value !== null);      // the row of this second may not be known yet
  const data = (figure, rows) => [rows.times, ...figure.dataset.fields.split(" ").map((field) => rows.values[field])];

  // Returns the rows from the first one in which something is known, LEAST_S at least: a chart is as wide as what there is.
  function known(rows) {
    const values = Object.values(rows.values);
    const found = rows.times.findIndex((_, at) => values.some((row) => row[at] !== null));
    const first = Math.max(0, Math.min(found, rows.times.length - Math.ceil(LEAST_S / rows.step_s)));
    return { ...rows, times: rows.times.slice(first),
      values: Object.fromEntries(Object.entries(rows.values).map(([field, row]) => [field, row.slice(first)])) };
  }

  function draw(figure, rows) {
    const plot = plots.get(figure);
    if (plot === undefined) plots.set(figure, create(figure, rows));
    else plot.setData(data(figure, rows));
  }

  function figuresOnPage() {
    for (const figure of plots.keys()) {
      if (!figure.isConnected) {
        plots.get(figure).destroy();
        plots.delete(figure);
      }
    }
    return [...document.querySelectorAll("figure.chart")];
  }

  async function refresh() {
    let rest = REST_MS.max;
    const bySource = Map.groupBy(figuresOnPage(), (figure) => figure.dataset.figures);
    for (const [source, figures] of bySource) {
      try {
        const answer = await fetch(source);
        if (answer.ok) {
          const rows = known(await answer.json());
          figures.filter((figure) => figure.isConnected).forEach((figure) => draw(figure, rows));
          rest = Math.min(rest, rows.step_s * 1000);
        } else rest = REST_MS.min;
      } catch {
        rest = REST_MS.min;             // the node is away, which the page says
      }
    }
    setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", refresh, { once: true }) : refresh()),
      Math.max(REST_MS.min, rest));
  }

  function again() {
    for (const plot of plots.values()) plot.destroy();
    plots.clear();
    const before = document.querySelectorAll("figure.chart");
    before.forEach((figure) => fetch(figure.dataset.figures).then((answer) => answer.json())
      .then((rows) => draw(figure, known(rows))).catch(() => {}));
  }

  if (document.querySelector("figure.chart") !== null) refresh();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", () => plots.forEach((plot, figure) =>
    plot.setSize({ width: figure.querySelector(".plot").clientWidth, height: HEIGHT })));
})();
