"""Pulls the log of the origin and gives it to the mirror, on the node of the replica that leads.

It connects to any server of the origin, preferably to a follower, and continues where the mirror is. When the entries
after that are gone there, it fetches a snapshot to a file first. A connection that breaks is made again, to another
server, less and less often while none can be used; the transfer of a snapshot continues where it broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path

from msgspec import Struct

from sockpqd.cluster.api import Checkpoint, Frame, Mirror
from sockpqd.gateway.replica.feed_stream import FeedEnded, FeedStream, Item, Mark, StreamBroken
from sockpqd.gateway.replica.origin import SNAPSHOT_S, Address, OriginConnection, OriginError
from sockpqd.gateway.replica.settings import OriginSettings

log = logging.getLogger("sockpqd.replica")

LEADS_LOOK_S = 0.25             # between two looks whether this node leads
RETRY_S, RETRY_S_MAX = 0.5, 30.0    # before the next connection: twice as long each time, up to this
RESUMED_S_MAX = 300.0           # so long a broken snapshot is asked for again where it was, before another is begun
IN_VAIN_S, IN_VAIN_S_MAX = 30.0, 3600.0     # before another snapshot, after one with which it could not follow: as well
AGE_S_MAX = 5.0                 # another server is tried when this one has heard nothing of its cluster for this long
CHECKPOINTS_KEPT = 64           # of the origin, to be compared with the mirror's
OFFER_BYTES = 1 << 20           # of frames given to the mirror at a time
FOLDER_MODE = 0o700

SLOW = (
    "the origin deletes entries faster than its snapshot arrives here, so the copy cannot go on behind it: give the "
    "origin a greater feed.keep_bytes, for what is written there in that time. The next snapshot is fetched later"
)
REFUSALS = {                    # answers to CLUSTER FEED, and what an operator can do
    "403 Forbidden": "feeds no copy to this user, or not over this connection (403 Forbidden): give replica.user the "
                     "right admin at the origin, and use TLS (replica.ca)",
    "500 Offline Mode": "is a copy itself (500 Offline Mode): replica.of must name servers of its origin",
}
LATER = "{}. The next snapshot is fetched later"
BROKEN = "the log of the origin cannot be taken over because of an error, which the log of this node has: report it"


class Phase(Enum):
    """The current work of the puller of a node."""

    IDLE = "idle"               # this node does not lead the replica
    CONNECTING = "connecting"
    SNAPSHOT = "snapshot"       # the state with which the copy begins is being fetched
    FOLLOWING = "following"


class PullFigures(Struct):
    """The figures of a puller; counters start at 0 with the process."""

    phase: Phase = Phase.IDLE
    problem: str = ""           # why it does not follow, "" while it does
    server: str = ""            # of the origin, that it reads from
    executed: int = 0           # entries of the origin, as last reported
    entries: int = 0            # received,
    entry_bytes: int = 0        # and their bytes
    snapshots: int = 0          # installed
    snapshot_bytes: int = 0     # received
    connections: int = 0        # that were made
    caught_up_at: float | None = None   # when the copy last had all that the origin had executed, monotonic seconds


class Different(OriginError):
    """The copy is not one of this origin's log."""


class _TooOld(Exception):
    """The server does not have the entries that the mirror needs next."""


class _NotLeading(Exception):
    """This node no longer leads the replica."""


class Puller:
    """Keeps the mirror up to date as long as this node leads the replica."""

    def __init__(
        self, mirror: Mirror, settings: OriginSettings, folder: Path, monotonic: Callable[[], float],
        rng: random.Random | None = None,
    ) -> None:
        """`folder`: for the snapshots that are fetched; it may be missing."""
        self.figures = PullFigures()
        self._mirror = mirror
        self._settings = settings
        self._folder = folder
        self._monotonic = monotonic
        self._random = rng or random.Random()
        self._checkpoints: deque[Checkpoint] = deque(maxlen=CHECKPOINTS_KEPT)
        self._partial: _Partial | None = None           # a snapshot whose transfer broke
        self._in_vain = 0           # snapshots that were fetched since the copy last had all,
        self._why_in_vain = ""      # why the last of them was no use,
        self._not_before = 0.0      # and when another may be asked for, monotonic seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to pull whenever this node leads."""
        self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        for left in self._folder.iterdir():             # by a process that ended
            left.unlink()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End pulling, and remove what has arrived of a snapshot."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._drop_partial()

    @property
    def lag_s(self) -> float | None:
        """The seconds since the copy last had all that the origin had executed; None: not since the start."""
        at = self.figures.caught_up_at
        return None if at is None else max(0.0, self._monotonic() - at)

    @property
    def lag_entries(self) -> int:
        """The entries that the copy lacks of those that the origin last reported."""
        return max(0, self.figures.executed - self._mirror.position().index)

    async def _run(self) -> None:
        retry_s = RETRY_S
        while True:
            began, received = self._monotonic(), self._received
            try:
                if not self._mirror.active:
                    raise _NotLeading
                await self._pull()
            except _NotLeading:
                self._become(Phase.IDLE)
                self.figures.problem = self._mirror.halted or ""
                retry_s = RETRY_S
                await asyncio.sleep(LEADS_LOOK_S)
                continue
            except (OriginError, StreamBroken, OSError) as error:
                self._complain(str(error))
            except Exception:
                log.exception("the log of the origin cannot be taken over: report it, with this line")
                self.figures.problem = BROKEN
            self._become(Phase.CONNECTING)
            useful = self._received > received or self._monotonic() - began > RETRY_S_MAX
            retry_s = RETRY_S if useful else min(retry_s * 2, RETRY_S_MAX)
            await asyncio.sleep(retry_s * self._random.uniform(0.5, 1.0))

    @property
    def _received(self) -> int:
        return self.figures.entry_bytes + self.figures.snapshot_bytes

    def _become(self, phase: Phase) -> None:
        self.figures.phase = phase
        if phase in (Phase.IDLE, Phase.CONNECTING):
            self.figures.server = ""

    def _complain(self, problem: str) -> None:
        if problem != self.figures.problem:
            log.warning("this replica does not follow its origin: %s. It tries again.", problem)
        self.figures.problem = problem

    async def _pull(self) -> None:
        """Follow the origin by one connection, until it breaks; fetch a snapshot if no server has the entries.

        A journal may be shorter on one server than on the others, as after a rejoin.
        """
        asked: set[Address] = set()
        while True:
            try:
                origin = await self._connected(asked)
            except OriginError:
                if not asked:
                    raise
                break                       # the others do not answer
            async with origin:
                try:
                    await self._follow(origin)
                except _TooOld:
                    asked.add(origin.address)
                    if origin.address == self._partial_server or len(asked) == len(set(self._settings.servers)):
                        await self._fetch(origin)
                        return
        async with await self._connected() as origin:
            await self._fetch(origin)

    async def _connected(self, asked: Collection[Address] = ()) -> OriginConnection:
        """Connect to a server of the origin not asked before, preferably one that does not lead. Raises OriginError."""
        self._become(Phase.CONNECTING)
        if self._settings.problem:
            raise OriginError(self._settings.problem)
        servers = [server for server in self._settings.servers if server not in asked]
        self._random.shuffle(servers)
        servers.sort(key=lambda server: server != self._partial_server)
        leader: Address | None = None
        problems = []
        for server in servers:
            try:
                origin = await self._connect(server)
                try:
                    if server == self._partial_server or not await origin.leads():
                        return origin
                except BaseException:
                    await origin.close()
                    raise
                await origin.close()
                leader = server
            except OriginError as error:
                problems.append(f"{_text(server)}: {error}")
        if leader is None:
            raise OriginError("; ".join(problems))
        return await self._connect(leader)

    async def _connect(self, server: Address) -> OriginConnection:
        """Connect to this server, if it is one of the cluster that the mirror is a copy of. Raises OriginError.

        The hashes alone would tell another cluster apart only at the next checkpoint.
        """
        origin = await OriginConnection.connect(server, self._settings)
        try:
            found, mine = await origin.cluster(), self._mirror.origin
            if found is not None and mine is not None and not mine.hex().startswith(found):
                raise Different(f"it is a server of the cluster {found}, and this replica is a copy of "
                                f"{mine.hex()[:len(found)]}: correct replica.of, or empty the data directories of the "
                                "replica to begin again")
        except BaseException:
            await origin.close()
            raise
        return origin

    @property
    def _partial_server(self) -> Address | None:
        return None if self._partial is None else self._partial.server

    # ---- following

    async def _follow(self, origin: OriginConnection) -> None:
        """Read the feed from the mirror's position on. Raises _TooOld if that server does not reach back to it."""
        position = self._mirror.position()
        index, at = position.index, position.at
        checkpoint = f" {at} {position.hash.hex()}" if at else ""
        answer = await origin.ask(f"CLUSTER FEED {index + 1}{checkpoint}")
        if answer == "409 Too Old":
            raise _TooOld
        if answer == "409 Different":
            raise Different(f"the copy differs from {_text(origin.address)} at entry {at}: it is a copy of another "
                            "cluster, or one of them was damaged. Empty the data directories of the replica to begin "
                            "again")
        if answer != f"200 OK {index + 1}":
            why = REFUSALS.get(answer, f"answered CLUSTER FEED with {answer}")
            raise OriginError(f"{_text(origin.address)} {why}")
        self._drop_partial()
        self._checkpoints.clear()
        self._begun(Phase.FOLLOWING, origin)
        log.info("this replica follows its origin at %s from entry %d on", _text(origin.address), index + 1)
        stream = FeedStream()
        data = b""
        while True:
            try:
                items = stream.items(data)
            except FeedEnded as end:
                if str(end) == "409 Too Old":
                    raise _TooOld from None
                raise OriginError(f"{_text(origin.address)} ended the feed: {end}") from None
            await self._take(items, origin)
            data = await origin.read()

    def _begun(self, phase: Phase, origin: OriginConnection) -> None:
        self.figures.connections += 1
        self.figures.server = _text(origin.address)
        self.figures.problem = ""
        self._become(phase)

    async def _take(self, items: list[Item], origin: OriginConnection) -> None:
        """Give frames to the mirror, note how far the origin is, and compare the hashes of both."""
        frames: list[Frame] = []
        size = 0
        heard_at = self._monotonic()
        for item in items:
            if isinstance(item, Frame):
                frames.append(item)
                size += len(item.data)
                if size >= OFFER_BYTES:
                    await self._offer(frames, size)
                    frames, size = [], 0
            elif isinstance(item, Checkpoint):
                self._checkpoints.append(item)
            else:
                await self._offer(frames, size)
                frames, size = [], 0
                self._note(item, heard_at, origin)
        await self._offer(frames, size)
        if not self._mirror.active:         # this node leads no longer, or the replica was promoted
            raise _NotLeading
        self._compare(origin)

    async def _offer(self, frames: list[Frame], size: int) -> None:
        if not frames:
            return
        self.figures.entries += len(frames)
        self.figures.entry_bytes += size
        if not await self._mirror.offer(frames):
            raise _NotLeading

    def _note(self, mark: Mark, heard_at: float, origin: OriginConnection) -> None:
        """Record how far the server is. Raises OriginError once it has sent all that it has, if that is old."""
        self.figures.executed = max(mark.executed, self.figures.executed)
        if mark.index < mark.executed:
            return
        self._in_vain, self._not_before = 0, 0.0
        self.figures.caught_up_at = max(heard_at - mark.age_ms / 1000, self.figures.caught_up_at or float("-inf"))
        if mark.age_ms > AGE_S_MAX * 1000:
            raise OriginError(f"{_text(origin.address)} has not heard its leader for {mark.age_ms / 1000:.0f} s")

    def _compare(self, origin: OriginConnection) -> None:
        """Raise Different if the mirror has another hash than the origin at its newest checkpoint."""
        mine = self._mirror.position()
        for checkpoint in self._checkpoints:
            if checkpoint.index == mine.at and checkpoint.hash != mine.hash:
                raise Different(f"the copy differs from {_text(origin.address)} at entry {mine.at}: one of them was "
                                "damaged, or executed the log differently. Keep a copy of the data directories of "
                                "both for the developers")

    # ---- the snapshot with which a copy begins

    async def _fetch(self, origin: OriginConnection) -> None:
        """Fetch a snapshot, or the rest of one, and install it."""
        partial = self._partial
        if partial is None and self._not_before > self._monotonic():
            raise OriginError(self._why_in_vain)
        if partial is not None and self._monotonic() - partial.at > RESUMED_S_MAX:
            self._drop_partial()
            partial = None
        self.figures.server = _text(origin.address)
        self._become(Phase.SNAPSHOT)            # the origin writes it before it answers, which may take minutes
        if partial is not None and partial.server == origin.address:
            head = await origin.ask(f"CLUSTER FEED SNAPSHOT {partial.index} {partial.size}", SNAPSHOT_S)
            if head == "409 Too Old":
                self._drop_partial()
                raise OriginError(f"{_text(origin.address)} does not have the rest of its snapshot any more: the "
                                  "transfer begins again")
        elif partial is None:
            head = await origin.ask("CLUSTER FEED SNAPSHOT", SNAPSHOT_S)
        else:
            raise OriginError(f"{_text(partial.server)} has the rest of a snapshot and cannot be reached")
        words = head.split()
        if len(words) != 5 or words[:2] != ["200", "OK"] or not words[2].isdigit() or not words[4].isdigit():
            raise OriginError(f"{_text(origin.address)} answered CLUSTER FEED SNAPSHOT with {head}")
        index, value, left = int(words[2]), bytes.fromhex(words[3]), int(words[4])
        if partial is None:
            partial = self._partial = _Partial(
                self._folder / f"snapshot-{index}", origin.address, index, value, self._monotonic())
            log.info("this replica begins with the state of %s after entry %d, of %d bytes", _text(origin.address),
                     index, left)
        self._begun(Phase.SNAPSHOT, origin)
        while left:
            data = (await origin.read())[:left]
            if not self._mirror.active:         # the next leader, or this one if it goes on, gets the rest
                raise _NotLeading
            partial.write(data)
            partial.at = self._monotonic()
            self.figures.snapshot_bytes += len(data)
            left -= len(data)
        self._partial = None
        try:
            partial.close()
            objection = await self._mirror.install(partial.path, index, partial.chain)
            if objection is not None and not self._mirror.active:
                raise _NotLeading
            wait_s = min(IN_VAIN_S * 2 ** min(self._in_vain, 10), IN_VAIN_S_MAX)
            self._in_vain, self._not_before = self._in_vain + 1, self._monotonic() + wait_s
            self._why_in_vain = SLOW if objection is None else LATER.format(objection)
            if objection is not None:
                raise OriginError(self._why_in_vain)
            self.figures.snapshots += 1
        finally:
            partial.remove()

    def _drop_partial(self) -> None:
        partial, self._partial = self._partial, None
        if partial is not None:
            partial.remove()


class _Partial:
    """A snapshot of which a part has arrived, in a file."""

    def __init__(self, path: Path, server: Address, index: int, chain: bytes, at: float) -> None:
        self.path = path
        self.server = server
        self.index = index
        self.chain = chain              # the hash of the origin's log up to `index`
        self.size = 0
        self.at = at                    # when something arrived last, monotonic seconds
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> None:
        """Append these bytes. Raises OSError."""
        assert self._file is not None
        while data:
            written = os.pwrite(self._file, data, self.size)
            self.size += written
            data = data[written:]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
