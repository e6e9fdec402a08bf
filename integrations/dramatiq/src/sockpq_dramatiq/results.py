"""Results of actors as jobs with a key and a time to live; nothing polls for them."""

from __future__ import annotations

import time
from typing import Any

from dramatiq.encoder import Encoder
from dramatiq.results import ResultBackend, ResultTimeout
from dramatiq.results.backend import DEFAULT_TIMEOUT, Missing
from sockpq import Client, EventsLost, Key
from sockpq.names import escape_key, escape_name

from sockpq_dramatiq.errors import errors_of_dramatiq
from sockpq_dramatiq.step import Command, Part, collecting, execute

QUEUE = "dramatiq.results"
TTL_S = 600.0
JOINED_BYTES_MAX = 1024 * 1024      # a larger result is stored before the acknowledgement instead of with it


class SockpqResults(ResultBackend):
    """Stores results in the cluster; with the client of the broker, in one step with the acknowledgement."""

    def __init__(
        self, client: Client | None = None, *, ttl: float = TTL_S, prefix: str = "",
        namespace: str = "dramatiq-results", encoder: Encoder | None = None, use_namespace_prefix_keys: bool = False,
    ) -> None:
        """`client`: by default the broker's, for SockpqBroker(results=). `ttl`: seconds for which results are kept.

        `prefix`: of the name of the queue that holds the results. `namespace`, `encoder` and
        `use_namespace_prefix_keys` are Dramatiq's.
        """
        super().__init__(
            namespace=namespace, encoder=encoder, use_namespace_prefix_keys=use_namespace_prefix_keys,
        )
        self.ttl = ttl
        self._client = client
        self._queue = escape_name(QUEUE, prefix)

    def attach(self, client: Client, prefix: str) -> None:
        """Use the client and the prefix of a broker, unless this backend has a client of its own."""
        if self._client is None:
            self._client = client
            self._queue = escape_name(QUEUE, prefix)

    @property
    def client(self) -> Client:
        """The client for the cluster. Raises RuntimeError when there is none yet."""
        if self._client is None:
            raise RuntimeError("SockpqResults has no client: give it one, or give it to SockpqBroker(results=)")
        return self._client

    def get_result(self, message: Any, *, block: bool = False, timeout: int | None = None) -> Any:
        """Return the result of a message. `block`: wait for it, `timeout` milliseconds (10,000) at most.

        Raises ResultMissing, ResultTimeout, ResultFailure when the actor has failed.
        """
        if not block:
            return super().get_result(message)
        result = self._wait(self.build_message_key(message), (DEFAULT_TIMEOUT if timeout is None else timeout) / 1000)
        if result is Missing:
            raise ResultTimeout(message)
        return self.unwrap_result(result)

    def _get(self, message_key: str) -> Any:
        with errors_of_dramatiq():
            found = self.client.peek(Key(self._queue, escape_key(message_key)))
        return Missing if found is None else self.encoder.decode(found.data)

    def _wait(self, message_key: str, seconds: float) -> Any:
        until = time.monotonic() + seconds
        while (found := self._get(message_key)) is Missing and (left := until - time.monotonic()) > 0:
            try:
                with errors_of_dramatiq(), self.client.events("FINI", self._item(message_key), wait=left) as stored:
                    stored.open()               # from now on no result is missed, so look again
                    if self._get(message_key) is Missing:
                        next(stored, None)
            except EventsLost:
                pass
        return found

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        part = self._stored(message_key, self.encoder.encode(result), ttl / 1000)
        step = collecting()
        if step is not None and step.client is self._client and part.bytes <= JOINED_BYTES_MAX:
            step.add(part)
            return
        with errors_of_dramatiq():
            execute(self.client, part.commands())

    def _stored(self, message_key: str, data: bytes, ttl: float) -> Part:
        """Return the commands that store a result; the end of an item without jobs is the event that announces it."""
        key, item = escape_key(message_key), self._item(message_key)
        return Part((
            Command(lambda to: to.put(self._queue, data, key=key, on_duplicate="replace", ttl=ttl)),
            Command(lambda to: to.item_hold(item)),
            Command(lambda to: to.item_release(item)),
        ), len(data))

    def _item(self, message_key: str) -> str:
        return escape_name(f"{self._queue}.{message_key}")
