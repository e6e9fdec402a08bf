"""Logs requests that were refused because their sender is unknown: together, as anybody can send very many."""

from __future__ import annotations

import logging
from collections import Counter

from sockpq_sqs.door.limits import REFUSALS_LOGGED_S

log = logging.getLogger("sockpq-sqs")

REASONS_MAX = 20                # addresses with their errors in one line; others are counted


class RefusalsLog:
    """Collects refusals by address and error, and writes a line about them from time to time."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._others = 0
        self._next = 0.0

    def add(self, address: str, code: str) -> None:
        """Count a refusal."""
        if len(self._counts) < REASONS_MAX or (address, code) in self._counts:
            self._counts[address, code] += 1
        else:
            self._others += 1

    def write(self, now: float) -> None:
        """Write what was collected, if the last line is old enough. `now` is the time of the loop in seconds."""
        if not self._counts or now < self._next:
            return
        self._next = now + REFUSALS_LOGGED_S
        found = ", ".join(f"{number} from {address} ({code})" for (address, code), number in self._counts.most_common())
        others = f", {self._others} others" if self._others else ""
        log.warning("refused requests: %s%s", found, others)
        self._counts.clear()
        self._others = 0
