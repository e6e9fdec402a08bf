"""Small pictures of a queue's figures over the last hour, as SVG in the page."""

from __future__ import annotations

from collections.abc import Sequence

from sockpqd.gateway.dashboard.markup import Child, Markup, tag
from sockpqd.gateway.samples import FigureSampler

WIDTH, HEIGHT = 120, 24
POINTS = 36                     # of each line: each is of a hundred seconds
HOUR_S = 3600

Line = Sequence[float | None]


def pictures(samples: FigureSampler, queue: str) -> tuple[Markup, Markup, Markup]:
    """Return pictures of the rates (put and done), of how many jobs wait, and of how long the oldest has waited.

    They are empty until something is known of the queue, which is some seconds after somebody has looked at it first.
    """
    course = samples.queue(queue)
    if course is None:
        return Markup(), Markup(), Markup()
    names = "put", "done", "waiting", "oldest"
    values = course.window(samples.now_s, HOUR_S, POINTS, names).values
    put, done, waiting, oldest = (values[name] for name in names)
    return (
        _sparkline(f"{queue}, last hour: put at most {rate(most(put))}, done at most {rate(most(done))}", put, done),
        _sparkline(f"{queue}, last hour: at most {most(waiting):.0f} waiting", waiting),
        _sparkline(f"{queue}, last hour: the oldest waited at most {most(oldest):.0f} s", oldest),
    )


def most(line: Line) -> float:
    """Return the greatest value that is known, 0 without any."""
    return max((value for value in line if value is not None), default=0.0)


def rate(per_second: float) -> str:
    """Return a rate with its unit."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def captioned(picture: Markup, *caption: Child) -> Markup:
    """Return a picture with a caption."""
    return tag("figure", picture, tag("figcaption", caption))


def _sparkline(label: str, *lines: Line) -> Markup:
    """Return lines, the newest on the right; `label` is read aloud."""
    top = max(1e-6, *map(most, lines))
    return tag(
        "svg", tag("title", label),
        [tag("polyline", points=run) for line in lines for run in _runs(line, top)] if len(lines) == 1 else
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
