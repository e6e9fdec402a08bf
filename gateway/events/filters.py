"""The filter of a subscriber: types and names of events."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sockpqd.core import GAP

MSG = "MSG"                     # messages of NOTIFY, which are not in the log
LOST = "LOST"                   # such messages may have been lost; sent as a GAP to subscribers of MSG
UNNAMED = ("LEADER", GAP)       # pass every filter of names
OPEN = (*UNNAMED, "WORKER")      # need no right for a queue; a WORKER is sent to the user who owns it

NAME_BYTES = 400                # that a name takes in a filter and in what finds it, besides its letters


class Filter(Struct, frozen=True):
    """Types and names of the wanted events: exact names and prefixes; neither: all names."""

    types: tuple[str, ...]
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """True if the filter passes all names."""
        return (not self.names and not self.prefixes) or "" in self.prefixes

    @property
    def held_bytes(self) -> int:
        """The approximate memory of the filter, in bytes."""
        return sum(NAME_BYTES + len(name) for name in (*self.names, *self.prefixes))


class CompiledFilter:
    """A filter prepared for many look-ups: their cost depends on the length of the name, not on the number of names."""

    __slots__ = ("everything", "lengths", "names", "prefixes", "types")

    def __init__(self, wish: Filter) -> None:
        self.types = frozenset(wish.types)
        self.everything = wish.everything
        # So that a name matches at most one prefix, only the shortest of nested prefixes is kept.
        self.prefixes = frozenset(() if self.everything else _shortest(wish.prefixes))
        self.lengths = frozenset(map(len, self.prefixes))
        self.names = frozenset(() if self.everything else [one for one in wish.names if not self._begins(one)])

    def wants(self, event_type: str, name: str) -> bool:
        """Return whether an event of this type and name passes."""
        return event_type in self.types and (
            self.everything or name in self.names or event_type in UNNAMED or self._begins(name))

    def _begins(self, name: str) -> bool:
        prefixes = self.prefixes
        return any(name[:length] in prefixes for length in self.lengths)


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """Remove prefixes that begin with another one."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept
