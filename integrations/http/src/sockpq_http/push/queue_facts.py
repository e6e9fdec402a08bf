"""The settings of queues that decide how a failed job is put back; read when one fails."""

from __future__ import annotations

import logging

from sockpq import ForbiddenError, QueueNotFound, SockpqError
from sockpq.aio import Client

LOG = logging.getLogger("sockpq-http")

FOR_S = 5.0         # how long what was read holds
CALL_S = 5.0


class QueueFacts:
    """The known settings of some queues; none without the right `queue` for them, which is safe."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._backoff: set[str] = set()
        self._groups: set[str] = set()
        self._due: dict[str, float] = {}        # when a queue is looked at again
        self._warned: set[str] = set()

    def has_backoff(self, queue: str) -> bool:
        """Return whether the queue itself decides when a job that failed comes back (BACKOFF)."""
        return queue in self._backoff

    def holds_groups(self, queue: str) -> bool:
        """Return whether SLEEP lets the group of a job rest, and not all of the queue."""
        return queue in self._groups

    async def look(self, queue: str, now: float) -> None:
        """Read the settings of a queue, unless that was done a short time ago; `now` is of one clock, in seconds.

        What cannot be read keeps its last known value.
        """
        if now < self._due.get(queue, now):
            return
        self._due[queue] = now + FOR_S
        try:
            settings = await self._client.queue_config(queue, timeout=CALL_S)
        except QueueNotFound:
            settings = {}
        except ForbiddenError:
            self._warn(
                queue, "its settings are unknown without the right `queue` for it: a rest that a receiver asks for is "
                "one of the whole target, and a job that fails comes back after 1 s, 2 s, 4 s and so on")
            return
        except SockpqError as error:
            LOG.debug("the settings of queue %s: %s", queue, error)
            return
        self._note(queue, settings)

    def _note(self, queue: str, settings: dict[str, str]) -> None:
        has_backoff = settings.get("backoff", "OFF") != "OFF"
        (self._backoff.add if has_backoff else self._backoff.discard)(queue)
        paced = any(settings.get(name, "OFF") != "OFF" for name in ("rate", "pulse"))
        shared = settings.get("sched") == "GROUPS" or (
            settings.get("sched") == "FAIR" and any(
                settings.get(name, "OFF") not in ("OFF", "0") for name in ("group_limit", "group_rate", "group_by"))
        )
        (self._groups.add if shared and not paced else self._groups.discard)(queue)
        if not has_backoff:
            self._warn(queue, "it has no BACKOFF: a job that fails comes back after 1 s, 2 s and so on, up to 60 s")
        if settings.get("tries", "0").split()[0] == "0":
            self._warn(queue, "it has no TRIES: a job that fails is sent again for ever")

    def _warn(self, queue: str, text: str) -> None:
        """Log a warning about a queue, each text once."""
        if f"{queue} {text}" not in self._warned:
            self._warned.add(f"{queue} {text}")
            LOG.warning("queue %s: %s", queue, text)
