"""Small pictures of figures over the last quarter of an hour to the last hour, as SVG in the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from sockpqd.gateway.dashboard.history import EVERY_S, FigureHistory
from sockpqd.gateway.dashboard.markup import Child, Markup, tag

WIDTH, HEIGHT = 120, 24
POINTS = 30                     # of each line at most: each is the greatest of some samples


def pictures(history: FigureHistory, queue: str) -> tuple[Markup, Markup, Markup]:
    """Return pictures of the rates (put and done), of how many jobs wait, and of how long the oldest has waited."""
    samples = history.of(queue)
    if samples is None:
        return Markup(), Markup(), Markup()
    rates = f"put now {_rate(samples.put[-1])}, at most {_rate(max(samples.put))} per second; " \
            f"done now {_rate(samples.done[-1])}, at most {_rate(max(samples.done))} per second"
    waiting = f"waiting now {samples.waiting[-1]}, at most {max(samples.waiting)}"
    oldest = f"the oldest waits {samples.oldest_s[-1]} s now, at most {max(samples.oldest_s)} s"
    span = f"last {samples_per_point(len(samples.put)) * POINTS * EVERY_S / 60:.0f} minutes"
    return (
        _sparkline(f"{queue}, {span}: {rates}", samples.put, samples.done),
        _sparkline(f"{queue}, {span}: {waiting}", samples.waiting),
        _sparkline(f"{queue}, {span}: {oldest}", samples.oldest_s),
    )


def samples_per_point(samples: int) -> int:
    """Return how many samples make one point, so that all of them fit; a young node has short lines."""
    return max(1, ceil(samples / POINTS))


def captioned(picture: Markup, *caption: Child) -> Markup:
    """Return a picture with a caption."""
    return tag("figure", picture, tag("figcaption", caption))


def _sparkline(label: str, *lines: Sequence[int]) -> Markup:
    """Return lines, the newest on the right; `label` is read aloud."""
    top = max(1, *map(max, lines))
    each = samples_per_point(len(lines[0]))
    return tag(
        "svg", tag("title", label), [tag("polyline", points=_points(line, top, each)) for line in lines],
        viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, role="img", class_="spark",
    )


def _points(line: Sequence[int], top: int, each: int) -> str:
    """Return the points of a line, the newest first. `each`: samples of a point."""
    step = WIDTH / (POINTS - 1)
    greatest = [max(line[max(0, end - each):end]) for end in range(len(line), 0, -each)]
    return " ".join(
        f"{WIDTH - at * step:.0f},{HEIGHT - 1 - value * (HEIGHT - 2) / top:.0f}" for at, value in enumerate(greatest)
    )


def _rate(count: int) -> str:
    rate = count / EVERY_S
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
