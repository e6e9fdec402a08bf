"""The files that pages load: style, scripts, and uPlot, which draws charts. Addresses change with the content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

_FOLDER = Path(__file__).parent / "assets"


class AssetFile(Struct, frozen=True):
    """A file with its type, and the beginning of its hash."""

    content: bytes
    kind: str
    version: str


def _read(path: str, kind: str) -> AssetFile:
    content = (_FOLDER / path).read_bytes()
    return AssetFile(content, kind, hashlib.sha256(content).hexdigest()[:12])


ASSETS = {f"/assets/{path.rpartition('/')[2]}": _read(path, kind) for path, kind in (
    ("style.css", "text/css"), ("script.js", "text/javascript"), ("charts.js", "text/javascript"),
    ("uplot/uplot.js", "text/javascript"), ("uplot/uplot.css", "text/css"), ("icon.svg", "image/svg+xml"),
)}


def asset(name: str) -> str:
    """Return the address of a file, which browsers may cache for ever."""
    path = f"/assets/{name}"
    return f"{path}?v={ASSETS[path].version}"
