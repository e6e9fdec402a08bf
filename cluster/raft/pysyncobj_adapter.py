"""The only module that knows pysyncobj: the pinned version, the parts that are replaced, and how it is called.

pysyncobj 0.3.17 as shipped loses acknowledged data and unpickles what a peer sends (docs/ARCHITECTURE.md lists each
hazard). All of it is cured through seams the library offers, without a fork: the transport object, two factories that
are module globals (`createJournal`, `Serializer`), and its `pickle` module. Everything else that is used of it is in
Replica; a test fails if another version is installed.
"""

from __future__ import annotations

import importlib.metadata
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgpack
import pysyncobj.pickle
from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, replicated, syncobj
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from cluster import limits
from cluster.errors import LibraryMismatch

VERSION = "0.3.17"

# Longer than any process runs: elections.py has the election timer, the library's own must never fire.
NEVER_S = 1e9

SUCCESS = FAIL_REASON.SUCCESS
NOT_LEADER = FAIL_REASON.NOT_LEADER
NOT_EXECUTED = frozenset((
    FAIL_REASON.QUEUE_FULL,
    FAIL_REASON.MISSING_LEADER,
    FAIL_REASON.DISCARDED,
    FAIL_REASON.NOT_LEADER,
    FAIL_REASON.REQUEST_DENIED,
))

Callback = Callable[[Any, int], None]

__all__ = [
    "FAIL_REASON",
    "NOT_EXECUTED",
    "NOT_LEADER",
    "QUORUM",
    "SUCCESS",
    "VERSION",
    "Callback",
    "PeerNode",
    "Replica",
    "Transport",
    "check_version",
]


def check_version() -> None:
    """Raise LibraryMismatch unless exactly the pinned pysyncobj is installed."""
    installed = importlib.metadata.version("pysyncobj")
    if installed != VERSION:
        raise LibraryMismatch(f"pysyncobj {installed} is installed, this program needs exactly {VERSION}")


class PeerNode(Node):  # type: ignore[misc]
    """A node by its name. There is one object per name, so identity is equality (pysyncobj compares a lot)."""

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


# The only other member of the cluster to the library; quorum.py counts the real ones.
QUORUM = PeerNode("quorum")


class _NoPoller:
    """Replaces pysyncobj's poller, which polls its own sockets once a tick; here it has none."""

    def poll(self, timeout: float) -> None:
        """Do nothing: the event loop waits, not the library."""


_REGULAR = b"\0"                # pysyncobj's mark of a command that calls a method
_CALL_HEAD_BYTES = {0xC4: 5, 0xC5: 6, 0xC6: 8}      # by MessagePack's mark for the size of the length field


def _call_head(method: int, length: int) -> bytes:
    """The head of a call in MessagePack, [method, [bytes]], with one argument of `length` bytes."""
    if length < 1 << 8:
        return struct.pack(">BBBBB", 0x92, method, 0x91, 0xC4, length)
    if length < 1 << 16:
        return struct.pack(">BBBBH", 0x92, method, 0x91, 0xC5, length)
    return struct.pack(">BBBBI", 0x92, method, 0x91, 0xC6, length)


def _dumps(value: Any, protocol: int | None = None) -> bytes:
    return bytes(msgpack.packb(value))


def _loads(data: bytes) -> Any:
    # Entries can have megabytes, so they are not copied here.
    head = _CALL_HEAD_BYTES.get(data[3], 0) if len(data) > 3 else 0
    if head and data[:head] == _call_head(data[1], len(data) - head):
        return data[1], (memoryview(data)[head:],)
    # pysyncobj recognises a call with arguments by isinstance(.., tuple)
    return msgpack.unpackb(data, use_list=False)


def _refuse(*_: Any) -> Any:
    raise RuntimeError("pickle is disabled: nothing is ever unpickled")


def _replace_pickle() -> None:
    pysyncobj.pickle.dumps = _dumps
    pysyncobj.pickle.loads = _loads
    pysyncobj.pickle.load = _refuse
    pysyncobj.pickle.dump = _refuse


_replace_pickle()
syncobj.PIPE_NOTIFIER_ENABLED = False       # it leaks two descriptors per object and wakes a poller that we do not have


def _field(name: str) -> Any:
    """One of the library's fields, to read: many times in each turn, so not by a chain of Python properties."""
    return property(attrgetter("_SyncObj" + name))


class Replica(SyncObj):  # type: ignore[misc]
    """One SyncObj whose single replicated method hands each committed entry to `apply(index, entry)`.

    To the library the cluster consists of this node and QUORUM; the peers are nodes without a vote that get the log.
    `apply` and the callbacks of propose() must not raise for anything a client can cause: pysyncobj retries an entry
    that raises for ever, and applies it twice after a callback that raises (hazards H5a, H5b).
    """

    def __init__(
        self,
        node: PeerNode,
        *,
        transport: Transport,
        journal: Any,
        snapshots: Any,
        dump_path: str,
        monotonic: Callable[[], float],
        heartbeat_s: float,
        step_down_s: float,
        apply: Callable[[int, bytes], Any],
    ) -> None:
        self._apply = apply
        self.is_leader = False      # by its own belief; leadership.py decides whether this node serves
        conf = SyncObjConf(
            autoTick=False,
            appendEntriesUseBatch=True,         # proposals are sent at once all the same: _checkCommandsToApply()
            appendEntriesPeriod=heartbeat_s,
            appendEntriesBatchSizeBytes=limits.BATCH_BYTES_MAX,
            raftMinTimeout=NEVER_S,
            raftMaxTimeout=2 * NEVER_S,
            connectionTimeout=3 * NEVER_S,
            leaderFallbackTimeout=step_down_s,
            commandsWaitLeader=False,
            dynamicMembershipChange=False,
            journalFile="journal",
            fullDumpFile=dump_path,
            serializer=_refuse,                 # set so that the library never builds dumps of its own
            deserializer=_refuse,
            logCompactionMinEntries=1 << 60,    # compact() decides by journal bytes instead
            logCompactionMinTime=NEVER_S,
            onStateChanged=self._state_changed,
        )
        syncobj.createJournal = lambda _: journal
        syncobj.Serializer = lambda *_: snapshots
        syncobj.monotonicTime = monotonic
        super().__init__(node, [QUORUM], conf, nodeClass=PeerNode, transport=transport)
        self._poller = _NoPoller()
        self._entry_id = self._methodToID[self._getFuncName("entry")]

    @replicated  # type: ignore[untyped-decorator]
    def entry(self, data: bytes) -> Any:
        """Apply a committed entry; the library calls this for each of them, in order."""
        return self._apply(self.applied_index + 1, data)

    def propose(self, data: bytes, callback: Callback) -> None:
        """Append an entry; `callback(result of apply, reason)` is called within a later tick(), or never.

        The same as entry(data, callback=callback), with one copy of the data instead of four.
        """
        self._applyCommand(b"".join((_REGULAR, _call_head(self._entry_id, len(data)), data)), callback)

    def tick(self) -> None:
        """Run one round of the library: elections, commit, apply, send, append."""
        self.doTick(0.0)

    def _state_changed(self, _before: int, _after: int) -> None:
        self.is_leader = bool(self._isLeader())

    def _checkCommandsToApply(self) -> None:
        """Part of the library's tick: append what was proposed and send it at once.

        The library's own setting for that would also send the commit index after each commit. Here it travels with the
        next entries or the next heartbeat.
        """
        self.conf.appendEntriesUseBatch = False
        super()._checkCommandsToApply()
        self.conf.appendEntriesUseBatch = True

    def compact(self) -> None:
        """Write a snapshot at the next tick, then cut the log up to it."""
        self.forceLogCompaction()

    leader_node: PeerNode | None = _field("__raftLeader")       # the leader this node last heard of
    term: int = _field("__raftCurrentTerm")                     # current term
    commit_index: int = _field("__raftCommitIndex")             # index of the last entry known to be committed
    applied_index: int = _field("__raftLastApplied")            # index of the last applied entry
