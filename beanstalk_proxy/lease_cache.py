"""The times to run of jobs that this program has seen, so that it need not ask for them at each reserve."""

from __future__ import annotations

KNOWN_MAX = 100_000             # jobs; the one known for longest is forgotten


class LeaseCache:
    """The leases of reserved jobs by number, which a job keeps for life."""

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def get(self, number: int) -> float | None:
        """The time to run of a job in seconds, None if it is unknown."""
        return self._known.get(number)

    def note(self, number: int, lease_s: float) -> None:
        """Store the time to run of a job."""
        if len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[number] = lease_s
