"""The page of the broker in Flower, and `/api/queues/length`: Flower knows RabbitMQ and Redis only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import kombu
from sockpq import QueueNotFound

SCHEMES = "sockpq", "sockpqs"
ANSWER_S = 2.0


def broker_page(module: ModuleType) -> None:
    """Make Flower find the queues of a cluster by the scheme of the URL, as it does for other brokers."""
    others = module.Broker.__new__

    def new(cls: type, broker_url: str, *args: Any, **kwargs: Any) -> Any:
        if urlsplit(broker_url).scheme in SCHEMES:
            return SockpqQueues(broker_url, kwargs.get("broker_options"), kwargs.get("broker_use_ssl"))
        return others(cls, broker_url, *args, **kwargs)

    module.Broker.__new__ = staticmethod(new)


class SockpqQueues:
    """The queues of a cluster, with the interface that Flower uses."""

    def __init__(self, broker_url: str, options: dict[str, Any] | None, ssl: Any) -> None:
        """Take Celery's options: `options` for the transport, `ssl` for broker_use_ssl."""
        self._url = broker_url
        self._options = dict(options or {})
        self._ssl = ssl or None

    async def queues(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return the figures of these queues, without the queues that do not exist."""
        return await asyncio.to_thread(self._look, sorted(names))

    def _look(self, names: list[str]) -> list[dict[str, Any]]:
        found = []
        with kombu.Connection(self._url, transport_options=self._options, ssl=self._ssl) as connection:
            channel = connection.channel()
            for name in names:
                try:
                    stat = channel._client.queue_stat(channel._name(name), timeout=ANSWER_S)
                except QueueNotFound:
                    continue
                waiting = stat["ready"] + stat["delayed"]
                found.append({
                    "name": name, "messages": waiting + stat["running"], "messages_ready": stat["ready"],
                    "messages_unacknowledged": stat["running"], "consumers": stat.get("waiters"),
                })
        return found
