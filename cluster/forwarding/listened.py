"""An index of the channels that the subscribers of a node listen to; its size does not slow down a look-up."""

from __future__ import annotations

from collections.abc import Sequence

from sockpqd.cluster.api import Channels


class Listened:
    """Groups of subscribers, each with its names and prefixes; indexed on first use."""

    def __init__(self, channels: Sequence[Channels] = ()) -> None:
        self.channels = list(channels)
        self._ready: _Groups | None = None

    def listening(self, channel: str) -> int:
        """Return the number of subscribers that listen to this channel."""
        return sum(self.channels[group][2] for group in self._groups().find(channel))

    def looks(self) -> int:
        """Return the maximum number of look-ups that a channel costs."""
        return 1 + len(self._groups().lengths)

    def _groups(self) -> _Groups:
        if self._ready is None:
            self._ready = _Groups(self.channels)
        return self._ready


class _Groups:
    """The groups by their names and prefixes."""

    def __init__(self, channels: Sequence[Channels]) -> None:
        self._names: dict[str, list[int]] = {}
        self._prefixes: dict[str, list[int]] = {}
        for group, (names, prefixes, _) in enumerate(channels):
            for name in names:
                self._names.setdefault(name, []).append(group)
            for prefix in prefixes:
                self._prefixes.setdefault(prefix, []).append(group)
        self.lengths = sorted(set(map(len, self._prefixes)))

    def find(self, channel: str) -> set[int]:
        groups = set(self._names.get(channel, ()))
        for length in self.lengths:
            if length > len(channel):
                break
            groups.update(self._prefixes.get(channel[:length], ()))
        return groups
