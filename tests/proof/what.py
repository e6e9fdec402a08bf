"""Records which packages are under proof: written when they are installed, read when they are run."""

from __future__ import annotations

from msgspec import Struct, field


class What(Struct):
    """The packages and the sources that they were built from."""

    commit: str = "unknown"
    wheels: dict[str, str] = field(default_factory=dict)        # SHA-256 of each
