"""The pictures of docs/FAIRNESS.md: functions of no arguments that draw a figure of matplotlib."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.fairness.cases import FULL_MS, customers, dependent, full, hung, stream, ten
from bench.fairness.simulation import DISCIPLINES, FAIR, FIFO, PRIORITY, simulate
from bench.fairness.tables import FULL_WORKERS
from bench.reports import pictures
from bench.reports.pictures import BLUE, COLOURS, GREY, ORANGE

WORKERS = (1, 2, 3, 4, 6, 8)
WINDOW_MS = 60_000


def courses() -> Figure:
    """A chart of the work of each worker over time: ten queries by one worker and by two."""
    figure, panels = pictures.new_figure(2, "Ten queries, the first of 10 s: who is served when", width=5.0, rows=3)
    figure.set_size_inches(10, 5)
    for number, discipline in enumerate((FIFO, PRIORITY, FAIR)):
        for column, workers in enumerate((1, 2)):
            axes = panels[2 * number + column]
            for run in simulate(ten(workers), discipline, workers).runs:
                axes.barh(
                    workers - run.worker, (run.end_ms - run.start_ms) / 1000, left=run.start_ms / 1000, height=0.8,
                    color=ORANGE if run.query == 0 else BLUE, edgecolor="white", linewidth=0.8,
                )
            axes.set_xlim(0, 20)
            axes.set_yticks([])
            axes.grid(visible=False, axis="y")
            axes.set_title(f"{discipline.name}, {workers} worker{'s' * (workers > 1)}", fontsize=9)
            if discipline is FAIR:
                axes.set_xlabel("seconds")
    figure.legend(
        handles=[Patch(color=ORANGE, label="the one of 10 s"), Patch(color=BLUE, label="those of 1 s")],
        loc="outside lower center", ncols=2, fontsize=8,
    )
    return figure


def latencies() -> Figure:
    """The mean latency of the short queries, and their p99, over the number of workers."""
    cases = (ten, dependent, hung, stream, customers)
    figure, panels = pictures.new_figure(5, "Latency of the short queries: mean, and p99 (dotted)", width=3.4)
    titles = ("one of 10 s, nine of 1 s", "[6] after [0] to [5]", "[0] hangs", "short ones keep coming",
              "one customer has 100 jobs")
    for axes, case_of, title in zip(panels, cases, titles, strict=True):
        workers = WORKERS[case_of is hung:]             # a single one would hang as well
        for discipline, colour in zip(DISCIPLINES, (GREY, *COLOURS), strict=False):
            found = [simulate(case_of(count), discipline, count) for count in workers]
            axes.plot(workers, [one.mean_s for one in found], color=colour, marker="o", markersize=3,
                      label=discipline.name)
            axes.plot(workers, [one.p99_s for one in found], color=colour, linestyle=":", linewidth=1)
        axes.set(xlabel="workers")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=9)
    panels[0].set_ylabel("seconds")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def levels() -> Figure:
    """Draw the part of the workers' time that each level had, minute by minute."""
    figure, panels = pictures.new_figure(3, "Share of the workers' time that went to queries in each level", width=3.4)
    minutes = range(FULL_MS // WINDOW_MS)
    for axes, discipline in zip(panels, (FIFO, PRIORITY, FAIR), strict=True):
        course = simulate(full(FULL_WORKERS), discipline, FULL_WORKERS)
        by_level = list(zip(*course.shares(WINDOW_MS), strict=True))
        axes.stackplot(minutes, [[100 * share for share in shares] for shares in by_level], colors=COLOURS,
                       labels=[f"level {level}" for level in range(len(by_level))])
        axes.set(xlabel="minutes", xlim=(0, minutes[-1]), ylim=(0, 100))
        axes.set_title(discipline.name, fontsize=9)
    panels[0].set_ylabel("%")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "fair_courses": courses, "fair_latencies": latencies, "fair_levels": levels,
}
