"""What one subscriber wants to hear."""

from __future__ import annotations

from msgspec import Struct

from core import GAP

MSG = "MSG"                     # messages of NOTIFY, which are not in the log
LOST = "LOST"                   # such messages may have been lost; told as a GAP to those who hear MSG
UNNAMED = ("LEADER", GAP)       # pass every filter of names
OPEN = (*UNNAMED, "WORKER")      # told to any user


class Filter(Struct, frozen=True):
    """Types, and the names about which events are wanted: exact ones and prefixes; neither: all names."""

    types: tuple[str, ...]
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether all names are wanted."""
        return (not self.names and not self.prefixes) or "" in self.prefixes

    def wants(self, event_type: str, name: str) -> bool:
        """Whether an event of a type that is wanted passes."""
        return event_type in UNNAMED or self.everything or name in self.names or name.startswith(self.prefixes)
