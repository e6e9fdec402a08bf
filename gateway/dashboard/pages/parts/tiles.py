"""Tiles: the figures of now in large type, with a remark below each."""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.gateway.dashboard.markup import Child, Markup, tag


def tiles(figures: Iterable[tuple[str, Child, Child]]) -> Markup:
    """Return a tile for each figure: its name, its value, and a remark or None."""
    return tag("dl", [
        tag("div", tag("dt", name), tag("dd", value, tag("small", remark) if remark else None))
        for name, value, remark in figures
    ], class_="figures")
