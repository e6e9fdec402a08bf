"""One function for each picture: records of a program in, a figure of matplotlib out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bench.reports.recording import Record

AUTHORS_RATES = {"PUT": 6115, "GET + DONE": 3225}      # per second: what the author of sockPQd measured
STYLE: Any = {
    "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "grid.linewidth": 0.6,
    "legend.frameon": False, "svg.fonttype": "none", "svg.hashsalt": "sockpqd",
}
BLUE, ORANGE, GREEN, RED, GREY = COLOURS = ("#2b6cb0", "#dd7a1e", "#2f855a", "#c53030", "#777777")
STYLES = ("-", "--", ":", "-.")
GOAL: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1.0}
THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.10g}")
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def author(records: list[Record]) -> Figure:
    """Draw the rate of each round over the number of jobs that waited."""
    figure, (axes,) = new_figure(1, "Jobs per second with more and more jobs waiting")
    for record, style in zip(records, _styles(records), strict=True):
        for (phase, points), colour in zip(record.curves.items(), COLOURS, strict=False):
            axes.plot(*_coordinates(points), style, color=colour, marker="o", markersize=3,
                      label=f"{phase}, {record.cluster}")
    for (phase, rate), colour in zip(AUTHORS_RATES.items(), COLOURS, strict=False):
        axes.axhline(rate, **{**GOAL, "color": colour})
        axes.annotate(f"the author's {phase}: {rate:,}", (1, rate), xycoords=("axes fraction", "data"),
                      xytext=(0, 2), textcoords="offset points", ha="right", color=colour, fontsize=8)
    _from_zero(axes, "jobs waiting", "per second")
    axes.xaxis.set_major_formatter(THOUSANDS)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    _legend(axes)
    return figure


def depth(records: list[Record]) -> Figure:
    """Draw rates, latencies and memory at each depth, from the last record."""
    rows = records[-1].rows
    figure, (rates, latencies, memory) = new_figure(3, "With many jobs waiting")
    names = [f"{row['waiting']:,}" for row in rows]
    _bars(rates, names, {"PUT": [row["PUT_per_second"] for row in rows],
                         "GET + DONE": [row["GET_DONE_per_second"] for row in rows]})
    _from_zero(rates, "jobs waiting", "per second")
    _legend(rates)
    for step, colour in zip(("PUT", "GET", "DONE"), COLOURS, strict=False):
        latencies.plot(names, [float(row[f"{step}_p99_ms"] or 0) for row in rows], color=colour, marker="o", label=step)
    _from_zero(latencies, "jobs waiting", "p99 ms")
    _legend(latencies)
    _bars(memory, names, {"leader": [row.get("leader_memory_MB") or 0 for row in rows]})
    _from_zero(memory, "jobs waiting", "memory of the leader, MB")
    return figure


def fan(records: list[Record]) -> Figure:
    """Draw the jobs per second of few and of many clients; each measurement is a point, the bar is their middle."""
    figure, panels = new_figure(len(records), "Jobs per second from producers to workers", width=4.0)
    for axes, record in zip(panels, records, strict=True):
        names = list(dict.fromkeys(str(row["clients"]) for row in record.rows))
        rates = [sorted(float(row["jobs_per_second"] or 0) for row in record.rows if row["clients"] == name)
                 for name in names]
        middles = [each[(len(each) - 1) // 2] for each in rates]
        axes.bar(names, middles, color=BLUE, width=0.5)
        for number, each in enumerate(rates):
            axes.plot([number] * len(each), each, "o", color="black", markersize=3)
        axes.axhline(0.8 * middles[0], **GOAL)
        _from_zero(axes, "producers + workers (dashed: 80% of the few)", "jobs per second")
        axes.set_title(f"the few with {record.options.get('pipeline', 1)} in flight each", fontsize=9)
    return figure


def latency(records: list[Record]) -> Figure:
    """Draw the share of commands that took longer, on a scale on which each further nine has the same width."""
    record = records[-1]
    figure, (axes,) = new_figure(1, f"Latencies at {record.options.get('rate', 0):g} jobs per second")
    for (step, points), colour in zip(record.curves.items(), (BLUE, ORANGE, GREEN, GREY), strict=False):
        inner = [point for point in points if point[0] < 100]
        axes.plot([1 / (1 - part / 100) for part, _ in inner], [ms for _, ms in inner], color=colour, marker="o",
                  markersize=3, label=f"{step} (max {points[-1][1]:.1f} ms)" if points else step)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 10, 100, 1000, 10_000], ["0", "50", "90", "99", "99.9", "99.99"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="percentile", ylabel="ms")
    axes.legend(loc="upper left")
    return figure


def tails(records: list[Record]) -> Figure:
    """Draw, for each record, the latencies of PUT in each phase, and the worst ones over time."""
    figure, panels = new_figure(2, "PUT while other things happen", width=5.2, rows=len(records))
    for record, bars, course in zip(records, panels[::2], panels[1::2], strict=True):
        names = [str(row["phase"]).replace(" ", "\n", 1) for row in record.rows]
        _bars(bars, names, {part: [row[f"{part}_ms"] for row in record.rows] for part in ("p50", "p99", "max")})
        bars.axhline(100, **GOAL)
        bars.set_ylabel(f"{_rate(record)}\nms (dashed: the goal for p99)")
        bars.tick_params(axis="x", labelsize=8)
        for (phase, points), colour in zip(record.curves.items(), (GREY, BLUE, GREEN, ORANGE, RED), strict=False):
            course.plot([point[0] for point in points], [point[3] for point in points], color=colour, label=phase)
        course.set(xlabel="seconds of the phase", ylabel="the longest of each half second, ms")
        for axes in (bars, course):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(PLAIN)
            _legend(axes)
    return figure


def failover(records: list[Record]) -> Figure:
    """Draw the share of trials that had ended, over time."""
    figure, (axes,) = new_figure(1, "From the end of a leader to the next acknowledged PUT")
    for record, colour in zip(records, COLOURS, strict=False):
        gaps = sorted(gap for _, gap in record.curves["gaps"])
        shares = [100 * (number + 1) / len(gaps) for number in range(len(gaps))]
        what = "frozen" if record.options.get("freeze") else "killed"
        axes.step([0, *gaps], [0, *shares], where="post", color=colour, label=f"{what}, {len(gaps)} trials")
    axes.axvline(500, **GOAL)
    _from_zero(axes, "ms (dashed: 500 ms)", "% of the trials are over")
    axes.set_xlim(left=0)
    _legend(axes)
    return figure


def children(points: Sequence[tuple[float, int]], put_at: float) -> Figure:
    """Draw the number of a worker's children over time, with a burst of tasks."""
    figure, (axes,) = new_figure(1, "pqworker --autoscale 10,3 with a burst of tasks")
    axes.step([at for at, _ in points], [count for _, count in points], where="post", color=BLUE)
    axes.axvline(put_at, **GOAL)
    _from_zero(axes, "seconds; dashed: 40 tasks of a second are put", "children")
    return figure


def new_figure(panels: int, title: str, width: float = 6.0, rows: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """Panels side by side, each this many inches wide; narrower ones when there are several. All rows in one list."""
    size = (width if panels == 1 else panels * min(width, 10.0 / panels), 3.2 * rows)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure, list(figure.subplots(rows, panels, squeeze=False).flat)


def _bars(axes: Axes, names: Sequence[str], groups: dict[str, list[Any]]) -> None:
    """Draw groups of bars side by side."""
    width = 0.8 / len(groups)
    for number, ((label, values), colour) in enumerate(zip(groups.items(), COLOURS, strict=False)):
        places = [place - 0.4 + width * (number + 0.5) for place in range(len(names))]
        axes.bar(places, [value or 0 for value in values], width * 0.92, color=colour, label=label)
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")


def _from_zero(axes: Axes, x: str, y: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set(xlabel=x, ylabel=y)
    axes.yaxis.set_major_formatter(THOUSANDS)


def _legend(axes: Axes) -> None:
    """Place the legend above the axes, where no data are."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, columnspacing=1.0)


def _coordinates(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def _styles(records: list[Record]) -> list[str]:
    return [STYLES[number % len(STYLES)] for number in range(len(records))]


def _rate(record: Record) -> str:
    rate = record.options.get("rate")
    return f"{rate:,g} per second" if rate else "at full speed"
