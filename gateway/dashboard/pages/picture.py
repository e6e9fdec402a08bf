"""A small picture of figures over time, as SVG in the page."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dashboard.markup import Markup, tag

WIDTH, HEIGHT = 120, 24


def sparkline(values: Sequence[int], samples: int, what: str) -> Markup:
    """Return a line of the values, the newest on the right, `samples` to the whole width; `what` is read aloud."""
    if not values:
        return Markup("")
    top = max(max(values), 1)
    first = samples - len(values)
    points = " ".join(
        f"{(first + at) * WIDTH / max(samples - 1, 1):.1f},{HEIGHT - 1 - value * (HEIGHT - 2) / top:.1f}"
        for at, value in enumerate(values)
    )
    label = f"{what}: now {values[-1]}, at most {max(values)}"
    return tag(
        "svg", tag("title", label), tag("polyline", points=points), viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH,
        height=HEIGHT, role="img", class_="spark",
    )
