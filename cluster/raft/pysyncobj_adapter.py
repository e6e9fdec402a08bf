"""The only module that knows pysyncobj: the pinned version, the parts that are replaced, and how it is called.

pysyncobj 0.3.17 as shipped loses acknowledged data and unpickles what a peer sends (docs/ARCHITECTURE.md lists each
hazard). All of that is fixed without a fork, through seams that the library offers: the transport object, two factories
that are module globals (`createJournal`, `Serializer`), and its `pickle` module. All other uses of the library are in
Replica. For the steady lane (steady_lane.py) Replica also takes single steps of the library's tick, and reads and
writes private fields of the library for that. A test fails if another version is installed.
"""

from __future__ import annotations

import importlib.metadata
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, cast

import msgpack
import pysyncobj.pickle
from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, replicated, syncobj
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from sockpqd.cluster import limits
from sockpqd.cluster.errors import LibraryMismatch

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
    "WatchedTransport",
    "check_version",
]


def check_version() -> None:
    """Raise LibraryMismatch unless exactly the pinned pysyncobj is installed."""
    installed = importlib.metadata.version("pysyncobj")
    if installed != VERSION:
        raise LibraryMismatch(f"pysyncobj {installed} is installed, this program needs exactly {VERSION}")


class PeerNode(Node):  # type: ignore[misc]  # pysyncobj has no types
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


_FOLLOWER = syncobj._RAFT_STATE.FOLLOWER


class WatchedTransport(Transport):  # type: ignore[misc]  # pysyncobj has no types
    """A transport that sets `attention` when it gives the library something that the next tick must handle."""

    attention = True

    def _onMessageReceived(self, node: PeerNode | None, message: dict[str, Any]) -> None:
        self.attention = True
        super()._onMessageReceived(node, message)

    def _onNodeConnected(self, node: PeerNode) -> None:
        self.attention = True
        super()._onNodeConnected(node)

    def _onNodeDisconnected(self, node: PeerNode) -> None:
        self.attention = True
        super()._onNodeDisconnected(node)

    def _onReadonlyNodeConnected(self, node: PeerNode) -> None:
        self.attention = True
        super()._onReadonlyNodeConnected(node)

    def _onReadonlyNodeDisconnected(self, node: PeerNode) -> None:
        self.attention = True
        super()._onReadonlyNodeDisconnected(node)


def _field(name: str) -> Any:
    """A reader of one of the library's fields, faster than a Python property, as it is used many times in each turn."""
    return property(attrgetter("_SyncObj" + name))


class Replica(SyncObj):  # type: ignore[misc]  # pysyncobj has no types
    """One SyncObj whose single replicated method hands each committed entry to `apply(index, entry)`.

    To the library the cluster consists of this node and QUORUM; the peers are nodes without a vote that get the log.
    `enough()` returns whether this turn has executed entries for long enough: a follower then continues in its next
    turn (`behind`). A leader executes all of them, since the membership after them decides which answers count. `apply`
    and the callbacks of propose() must not raise for anything a client can cause: pysyncobj retries an entry that
    raises for ever, and applies it twice after a callback that raises (hazards H5a, H5b).
    """

    def __init__(
        self,
        node: PeerNode,
        *,
        transport: WatchedTransport,
        journal: Any,
        snapshots: Any,
        dump_path: str,
        monotonic: Callable[[], float],
        heartbeat_s: float,
        step_down_s: float,
        apply: Callable[[int, bytes], Any],
        enough: Callable[[], bool],
    ) -> None:
        self._apply = apply
        self.enough = enough
        self.behind = False         # the last turn left committed entries to the next one
        self._transport = transport
        self._heartbeat_s = heartbeat_s
        self.proposed: deque[tuple[bytes, Callback]] = deque()      # not appended yet
        self.is_leader = False      # by its own belief; leadership.py decides whether this node serves
        conf = SyncObjConf(
            autoTick=False,
            appendEntriesUseBatch=True,         # proposals are sent at once nevertheless: _checkCommandsToApply()
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

    @replicated  # type: ignore[untyped-decorator]  # pysyncobj has no types
    def entry(self, data: bytes) -> Any:
        """Apply a committed entry; the library calls this for each of them, in order."""
        return self._apply(self.applied_index + 1, data)

    def propose(self, data: bytes, callback: Callback) -> None:
        """Append an entry in the next turn; `callback(result of apply, reason)` is called in a later one, or never.

        The same as entry(data, callback=callback), with one copy of the data instead of four.
        """
        self.proposed.append((b"".join((_REGULAR, _call_head(self._entry_id, len(data)), data)), callback))

    def tick(self) -> None:
        """Run one round of the library: elections, commit, apply, send, append."""
        self._transport.attention = False
        self.doTick(0.0)

    @property
    def attention(self) -> bool:
        """True if the library was given any input since its last tick began."""
        return bool(self._transport.attention)

    def _state_changed(self, _before: int, _after: int) -> None:
        self.is_leader = bool(self._isLeader())

    def _checkCommandsToApply(self) -> None:
        """Part of the library's tick: append what was proposed and send it at once.

        The library's own setting for that would also send the commit index after each commit. Here it travels with the
        next entries or the next heartbeat.
        """
        self.conf.appendEntriesUseBatch = False
        super()._checkCommandsToApply()         # what it may have left: it stops after the time of a heartbeat
        while self.proposed:
            self._applyCommand(*self.proposed.popleft())
            super()._checkCommandsToApply()
        self.conf.appendEntriesUseBatch = True

    def compact(self) -> None:
        """Write a snapshot at the next tick, then cut the log up to it."""
        self._transport.attention = True
        self.forceLogCompaction()

    # The steps of the steady lane: what the library would do in the same case, on its own fields.

    def commit_to(self, index: int) -> None:
        """Leader: commit all entries up to this one."""
        self._SyncObj__raftCommitIndex = self._SyncObj__leaderCommitIndex = index
        self._SyncObj__raftLog.setRaftCommitIndex(index)

    def apply_committed(self) -> None:
        """Apply the committed entries, or a follower as many as it has time for, and call their callbacks."""
        journal, waiting = self._SyncObj__raftLog, self._SyncObj__commandsWaitingCommit
        self.behind = False
        while (index := self.applied_index + 1) <= self._SyncObj__raftCommitIndex:
            if index < journal.first_index:
                return                  # only a snapshot can help
            command, _, term = journal.entry(index)
            callbacks = waiting.pop(index, ())
            data = self.argument(command)
            result = self._SyncObj__doApplyCommand(command) if data is None else self._apply(index, data)
            for proposed_in, callback in callbacks:
                if proposed_in == term:
                    callback(result, SUCCESS)
                else:
                    callback(None, FAIL_REASON.DISCARDED)
            self._SyncObj__raftLastApplied = index
            if index < self._SyncObj__raftCommitIndex and not self.is_leader and self.enough():
                self.behind = True
                return

    def _SyncObj__applyLogEntries(self) -> bool:
        """Part of the library's tick: apply in slices as well. Returns whether to send the commit index at once."""
        self.apply_committed()
        return False

    def uncommitted(self) -> Iterator[tuple[int, bytes]]:
        """Index and data of the proposed entries after the last one that is known to be committed."""
        journal = self._SyncObj__raftLog
        for index in range(max(self.applied_index, self.commit_index) + 1, journal.last_index + 1):
            data = self.argument(journal.entry(index)[0])
            if data is not None:
                yield index, data

    def argument(self, command: bytes) -> bytes | None:
        """The data of an entry that was proposed by propose(); None if it is anything else."""
        head = 1 + _CALL_HEAD_BYTES.get(command[4], 0) if len(command) > 4 else 1
        if command[:head] != _REGULAR + _call_head(self._entry_id, len(command) - head):
            return None
        return cast(bytes, memoryview(command)[head:])      # entries can have megabytes, so they are not copied here

    def append_proposed(self) -> tuple[bytes, int, int]:
        """Leader: append the next proposed entry to the log; returns it."""
        command, callback = self.proposed.popleft()
        journal, term = self._SyncObj__raftLog, self._SyncObj__raftCurrentTerm
        index = journal.last_index + 1
        journal.add(command, index, term)
        self._SyncObj__commandsWaitingCommit[index].append((term, callback))
        return command, index, term

    def sent(self, node: PeerNode, index: int) -> None:
        """Leader: note that all entries up to this one were sent to a connected peer."""
        self._SyncObj__raftNextIndex[node] = index + 1

    def beaten(self, now: float) -> None:
        """Leader: note that something was sent to all connected peers, so no heartbeat is due for a while."""
        self._SyncObj__newAppendEntriesTime = now + self._heartbeat_s

    def follows(self, node: PeerNode, term: int) -> bool:
        """Return whether this node follows that one in this term, which must be the current one."""
        return (
            self._SyncObj__raftState == _FOLLOWER and self._SyncObj__raftLeader is node
            and self._SyncObj__raftCurrentTerm == term and not self._SyncObj__transferInProgress
        )

    def extend(self, entries: Sequence[tuple[bytes, int, int]], commit: int) -> None:
        """Follower: append entries that follow the last one, and take over the leader's commit index."""
        journal = self._SyncObj__raftLog
        for command, index, term in entries:
            journal.add(command, index, term)
        self._SyncObj__leaderCommitIndex = commit
        if commit > self._SyncObj__raftCommitIndex:
            self._SyncObj__raftCommitIndex = min(commit, journal.last_index)
        journal.setRaftCommitIndex(self._SyncObj__raftCommitIndex)

    leader_node: PeerNode | None = _field("__raftLeader")       # the leader this node last heard of
    term: int = _field("__raftCurrentTerm")                     # current term
    commit_index: int = _field("__raftCommitIndex")             # index of the last entry known to be committed
    applied_index: int = _field("__raftLastApplied")            # index of the last applied entry
