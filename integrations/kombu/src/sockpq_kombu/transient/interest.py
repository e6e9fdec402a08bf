"""Tracks which channels have subscribers, so that messages to channels without any are not sent."""

from __future__ import annotations

from time import monotonic


class Interest:
    """Tracks which channels have subscribers; one that had none is asked again after ASK_AGAIN_S seconds."""

    ASK_AGAIN_S = 10.0

    def __init__(self) -> None:
        self._silent_until: dict[str, float] = {}

    def there(self, channel: str) -> bool:
        """Return whether the channel may have a subscriber."""
        return monotonic() >= self._silent_until.get(channel, 0.0)

    def told(self, channel: str, hearers: int) -> None:
        """Record how many subscribers a message had."""
        if hearers:
            self._silent_until.pop(channel, None)
        else:
            self._silent_until[channel] = monotonic() + self.ASK_AGAIN_S
