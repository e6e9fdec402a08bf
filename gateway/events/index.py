"""Finds the subscribers of an event, by its type and its name.

An event costs a look-up for each length that a prefix has, up to the length of its name, and its subscribers; other
subscriptions cost nothing. Subscriptions to the same types share one entry, as there are hardly ever many different
sets of types. Beyond SETS_MAX sets, all other subscriptions are in one list and checked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from sockpqd.gateway.events.filters import UNNAMED, CompiledFilter

SETS_MAX = 32

Types = frozenset[str]


class IndexedSubscription(Protocol):
    """A subscriber that the index finds."""

    wanted: CompiledFilter


Who = TypeVar("Who", bound=IndexedSubscription)


class Index(Generic[Who]):
    """The subscriptions by the events that they want."""

    def __init__(self) -> None:
        self._sets: dict[Types | None, _Names[Who]] = {}        # by types; None: of those that are too many

    def add(self, who: Who) -> None:
        """Add a subscription, which gets the events of the types and names that it wants."""
        types = who.wanted.types
        key = types if types in self._sets or len(self._sets) < SETS_MAX else None
        self._sets.setdefault(key, _Names()).add(who)

    def remove(self, who: Who) -> None:
        """Remove a subscription, which must have been added."""
        for key in (who.wanted.types, None):
            names = self._sets.get(key)
            if names is not None and who in names.all:
                names.remove(who)
                if not names.all:
                    del self._sets[key]

    def hearers(self, event_type: str, name: str) -> list[Who]:
        """Return the subscriptions to an event of this type and name, each once."""
        found: list[Who] = []
        for types, names in self._sets.items():
            if types is None:
                found += [who for who in names.find(event_type, name) if event_type in who.wanted.types]
            elif event_type in types:
                found += names.find(event_type, name)
        return found

    def looks(self) -> int:
        """Return the maximum number of look-ups that an event costs."""
        return sum(1 + len(names.lengths) for names in self._sets.values())


class _Names(Generic[Who]):
    """The subscriptions to the same types, by the names that they want."""

    def __init__(self) -> None:
        self.all: dict[Who, None] = {}
        self.lengths: dict[int, int] = {}               # of the prefixes, and how many have each
        self._every: dict[Who, None] = {}
        self._exact: dict[str, dict[Who, None]] = {}
        self._prefixes: dict[str, dict[Who, None]] = {}

    def add(self, who: Who) -> None:
        self.all[who] = None
        wanted = who.wanted
        if wanted.everything:
            self._every[who] = None
        for name in wanted.names:
            self._exact.setdefault(name, {})[who] = None
        for prefix in wanted.prefixes:
            known = self._prefixes.get(prefix)
            if known is None:
                known = self._prefixes[prefix] = {}
                self.lengths[len(prefix)] = self.lengths.get(len(prefix), 0) + 1
            known[who] = None

    def remove(self, who: Who) -> None:
        del self.all[who]
        self._every.pop(who, None)
        wanted = who.wanted
        for name in wanted.names:
            known = self._exact[name]
            del known[who]
            if not known:
                del self._exact[name]
        for prefix in wanted.prefixes:
            known = self._prefixes[prefix]
            del known[who]
            if not known:
                del self._prefixes[prefix]
                self.lengths[len(prefix)] -= 1
                if not self.lengths[len(prefix)]:
                    del self.lengths[len(prefix)]

    def find(self, event_type: str, name: str) -> Iterator[Who]:
        if event_type in UNNAMED:
            yield from self.all
            return
        yield from self._every
        yield from self._exact.get(name, ())
        prefixes = self._prefixes
        for length in self.lengths:
            if length <= len(name):
                yield from prefixes.get(name[:length], ())
