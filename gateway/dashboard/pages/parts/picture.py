"""Small pictures of figures over time, as SVG in the page, and figures with their units."""

from __future__ import annotations

from collections.abc import Sequence

from sockpqd.gateway.dashboard.markup import Markup, tag
from sockpqd.gateway.dashboard.pages.parts.view import View, duration, size
from sockpqd.gateway.samples import FigureRows, FigureSeries

WIDTH, HEIGHT = 120, 24
POINTS = 36                     # of each line at most: of the last hour each is of a hundred seconds
MINUTE_S, HOUR_S = 60, 3600

Line = Sequence[float | None]


def recent(view: View) -> tuple[str, int]:
    """Return the span of pictures, in words and in seconds: an hour, or the minutes for which this node has figures."""
    span_s = shown_s(view, view.samples.cluster, HOUR_S)
    return {HOUR_S: "hour", MINUTE_S: "minute"}.get(span_s, f"{span_s // MINUTE_S} minutes"), span_s


def shown_s(view: View, series: FigureSeries, span_s: int) -> int:
    """Return the seconds of a span for which a series has figures, in whole minutes, one at least."""
    known_s = series.known_s(view.samples.now_s)
    return min(span_s, max(1, -(-known_s // MINUTE_S)) * MINUTE_S)


def recent_rows(view: View, queue: str, *fields: str) -> FigureRows | None:
    """Return these fields of a queue over the span of pictures, in at most POINTS rows.

    None until figures are known, some seconds after the first visit to the queue.
    """
    series = view.samples.queue(queue)
    return None if series is None else series.window(view.samples.now_s, recent(view)[1], POINTS, fields)


def ranged(what: str, unit: str, *lines: Line) -> Markup:
    """Return a picture of lines with the greatest value below it, nothing if all are zero or unknown.

    `what`: the label for screen readers.
    """
    top = max(map(most, lines))
    if not top:
        return Markup()
    return tag("span", sparkline(f"{what}: at most {amount(top, unit)}", *lines),
               tag("span", f"0 to {amount(top, unit)}", class_="range"), class_="ranged")


def most(line: Line) -> float:
    """Return the greatest value that is known, 0 without any."""
    return max((value for value in line if value is not None), default=0.0)


def mean(line: Line) -> float | None:
    """Return the mean of the values that are known, None without any."""
    known = [value for value in line if value is not None]
    return sum(known) / len(known) if known else None


def amount(value: float | None, unit: str) -> str:
    """Return a figure with its unit: `rate` (per second), `count`, `seconds`, `ms`, `bytes` or `percent`."""
    if value is None:
        return "-"
    if unit == "rate":
        return f"{value:,.0f}/s" if value >= 10 or not value else f"{value:.1f}/s" if value >= 0.1 else f"{value:.2f}/s"
    if unit == "seconds" and 0 < value < 1:
        return f"{value * 1000:.1f} ms" if value < 0.01 else f"{value * 1000:.0f} ms"
    if unit == "seconds":
        return duration(round(value * 1000))
    if unit == "bytes":
        return size(round(value))
    if unit == "ms":
        return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"
    if unit == "percent":
        return f"{value:.0f}%"
    return f"{value:.1f}" if value < 10 and value % 1 else f"{value:,.0f}"      # a mean of counts


def sparkline(label: str, *lines: Line) -> Markup:
    """Return lines, the newest on the right; `label` is read aloud."""
    top = max(1e-6, *map(most, lines))
    return tag(
        "svg", tag("title", label),
        [tag("g", [tag("polyline", points=run) for run in _runs(line, top)]) for line in lines],
        viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, role="img", class_="spark",
    )


def _runs(line: Line, top: float) -> list[str]:
    """Return the points of each run of values that are known."""
    step = WIDTH / (len(line) - 1)
    runs: list[list[str]] = [[]]
    for at, value in enumerate(line):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{at * step:.0f},{HEIGHT - 1 - value * (HEIGHT - 2) / top:.0f}")
    return [" ".join(run) for run in runs if run]
