"""The data shared by all front ends of a cluster: its id, and the key of receipt handles."""

from __future__ import annotations

import os
from hashlib import sha256

from sockpq import Key
from sockpq.aio import Client

KEYS = "sqs:keys"
HANDLES = "handles"
KEY_BYTES = 32


class Identity:
    """Reads the cluster's id and the key of handles once, with the first request that needs them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._key = b""
        self._cluster = ""

    async def key(self) -> bytes:
        """Return the key of handles; the first front end of a cluster makes it."""
        return self._key or await self._read()

    async def _read(self) -> bytes:
        job = await self._client.peek(Key(KEYS, HANDLES))
        if job is None:
            await self._client.queue_pause(KEYS, "out")     # nobody takes it
            await self._client.put(KEYS, os.urandom(KEY_BYTES), key=HANDLES, on_duplicate="ignore")
            job = await self._client.peek(Key(KEYS, HANDLES))
        if job is None:
            raise RuntimeError(f"the key of receipt handles was put into queue {KEYS} and is not there")
        self._cluster = (await self._client.cluster_id()).id or ""
        self._key = job.data
        return self._key

    def message_id(self, number: int) -> str:
        """Return the id of a message by the number of its job, a UUID; `key()` must have been called before.

        It is the same in all queues that the job goes through, and needs no place of its own.
        """
        digits = sha256(f"{self._cluster}:{number}".encode()).hexdigest()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def sequence_number(number: int) -> str:
    """Return the sequence number of a message by the number of its job."""
    return f"{number:020d}"
