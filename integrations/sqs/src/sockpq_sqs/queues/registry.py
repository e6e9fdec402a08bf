"""The registry: an entry for each queue, a job of the cluster that is never handed out.

An entry is the job of the queue `sqs:registry` (with the account's prefix before it) whose key is the name of the SQS
queue. It is created and replaced atomically, so front ends may change entries at the same time. What was read counts as
current for `FRESH_S`: for that long a front end may not notice what another one has changed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

import msgspec
from msgspec.structs import replace
from sockpq import Aborted, JobNotFound, Key, Number, QueueFull, QueueNotFound
from sockpq.aio import Client

from sockpq_sqs.model.errors import no_queue, throttled
from sockpq_sqs.queues.entry import Entry, decode, encode
from sockpq_sqs.queues.names import Names, QueueName

REGISTRY = "sqs:registry"
PURGES = "sqs:purges"       # its jobs last a second; it remembers keys
DEAD = "sqs.dead"           # header of an entry: the queue to which its dead letters go
FRESH_S = 1.0
PREFIX = re.compile(r"[A-Za-z0-9_.-]{0,80}")
ATTEMPTS_MAX = 20           # to replace an entry that others replace at the same time
PAGE = 1000


@dataclass(slots=True)
class _Known:
    """An entry that was read: the number of its job, which changes with each change, and when it was read."""

    entry: Entry
    number: int
    read_at: float


class Registry:
    """Reads and changes entries with the front end's own client."""

    def __init__(self, client: Client, names: Names, now: Callable[[], float] = monotonic) -> None:
        """`now`: a clock in seconds."""
        self._client = client
        self._names = names
        self._now = now
        self._known: dict[QueueName, _Known] = {}
        self._prepared: set[str] = set()        # registries that are known not to give their jobs

    async def find(self, queue: QueueName, *, fresh: bool = False) -> Entry | None:
        """Return the entry of a queue, None if there is no such queue. `fresh`: as it is now."""
        known = self._known.get(queue)
        if known and not fresh and self._now() - known.read_at < FRESH_S:
            return known.entry
        if known:
            known.read_at = self._now()         # other requests go on with this one meanwhile
        read = await self._read(queue)
        return read.entry if read else None

    async def get(self, queue: QueueName, *, fresh: bool = False) -> Entry:
        """Return the entry of a queue. Raises SqsError if there is no such queue."""
        found = await self.find(queue, fresh=fresh)
        if found is None:
            raise no_queue()
        return found

    async def _read(self, queue: QueueName) -> _Known | None:
        job = await self._client.peek(Key(self._registry(queue.account), queue.name))
        if job is None or job.number is None:
            self._known.pop(queue, None)
            return None
        try:
            entry = decode(job.data)
        except msgspec.MsgspecError as error:
            raise RuntimeError(f"the entry of queue {queue.name} in {job.queue} cannot be read: {error}") from error
        self._known[queue] = known = _Known(entry, job.number, self._now())
        return known

    async def add(self, queue: QueueName, entry: Entry) -> Entry:
        """Add an entry unless the queue has one; returns the one that it has now."""
        registry = self._registry(queue.account)
        await self._prepare(registry)
        for _ in range(ATTEMPTS_MAX):
            stored = await self._client.put(
                registry, encode(entry), key=queue.name, on_duplicate="ignore", number=True, headers=_headers(entry),
            )
            if stored.outcome == "new" and stored.number is not None:
                self._known[queue] = _Known(entry, stored.number, self._now())
                return entry
            found = await self.find(queue, fresh=True)
            if found:
                return found                    # unless somebody has deleted it meanwhile
        raise throttled()

    async def change(self, queue: QueueName, update: Callable[[Entry], Awaitable[Entry]]) -> Entry:
        """Replace an entry with what `update` makes of it, and return that. Raises SqsError if there is no such queue.

        `update` may be called again, when another front end has replaced the entry meanwhile.
        """
        registry = self._registry(queue.account)
        for _ in range(ATTEMPTS_MAX):
            known = await self._read(queue)
            if known is None:
                raise no_queue()
            entry = await update(known.entry)
            if entry == known.entry:
                return entry
            try:
                async with self._client.transaction() as transaction:
                    transaction.delete(Number(known.number))
                    transaction.put(registry, encode(entry), key=queue.name, number=True, headers=_headers(entry))
            except Aborted as error:
                if isinstance(error.reason, JobNotFound):
                    continue
                raise
            self._known[queue] = _Known(entry, transaction.results[1].number, self._now())
            return entry
        raise throttled()

    async def share(self, queue: QueueName) -> None:
        """Let the cluster share a standard queue fairly among the groups of its messages from now on."""

        async def grouped(entry: Entry) -> Entry:
            return replace(entry, grouped=True)

        await self._client.queue_config(queue.server, sched="fair")
        await self.change(queue, grouped)

    async def remove(self, queue: QueueName) -> bool:
        """Remove an entry; returns whether there was one."""
        self._known.pop(queue, None)
        try:
            await self._client.delete(Key(self._registry(queue.account), queue.name))
        except JobNotFound:
            return False
        return True

    async def queues(self, account: str, prefix: str) -> list[str]:
        """Return the names of an account's queues that begin with `prefix`, sorted."""
        if not PREFIX.fullmatch(prefix):
            return []
        return await self._found(account, prefix, None)

    async def sources(self, dead: QueueName) -> list[str]:
        """Return the names of the queues whose dead letters go to this one, sorted."""
        return await self._found(dead.account, "", (DEAD, dead.server))

    async def _found(self, account: str, prefix: str, header: tuple[str, str] | None) -> list[str]:
        names = set()
        try:
            async for job in self._client.find(
                self._registry(account), state="ready", key=prefix, header=header, count=PAGE,
            ):
                if job.meta.key is not None:
                    names.add(job.meta.key)
        except QueueNotFound:
            return []
        return sorted(names)

    async def first_in(self, seconds: float, queue: QueueName, entry: Entry) -> bool:
        """Return whether no front end has asked this for the queue in this many seconds before."""
        try:
            stored = await self._client.put(
                f"{self._names.prefix(queue.account)}{PURGES}", b"", ttl=1,
                dedup=(f"{queue.name}.{entry.created}", seconds),
            )
        except QueueFull:       # very many queues were purged: none is refused
            return True
        return stored.outcome == "new"

    def _registry(self, account: str) -> str:
        return f"{self._names.prefix(account)}{REGISTRY}"

    async def _prepare(self, registry: str) -> None:
        """Keep the registry's jobs from consumers of any queue."""
        if registry not in self._prepared:
            await self._client.queue_pause(registry, "out")
            self._prepared.add(registry)


def _headers(entry: Entry) -> dict[str, str] | None:
    return {DEAD: entry.redrive.dead} if entry.redrive else None
