"""Executes committed entries on the machine of this node, each exactly once, and logs why one failed."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

import msgspec

from sockpqd.cluster.api import ClusterListener
from sockpqd.cluster.errors import ApplyFailed, EntryTooNew, EntryTooOld, OutOfMemory
from sockpqd.cluster.storage.state_hash import DIGEST_BYTES, Chain
from sockpqd.core import (
    Applied,
    Entry,
    FromOrigin,
    Machine,
    OldEntry,
    PageLost,
    Reply,
    decode_entry,
    digests_of,
    name_of,
)

log = logging.getLogger("sockpqd.cluster")


def decoded(index: int, data: bytes) -> Entry:
    """The entry in these bytes. Raises EntryTooNew and EntryTooOld if another version must read it."""
    try:
        return decode_entry(data)
    except OldEntry as error:
        raise EntryTooOld(
            f"entry {index} was written by version 1.0.0rc1 ({error}). Start that version again on all nodes, say "
            "`pqctl cluster offline`, and `pqctl cluster snapshot` on each; then stop them all and start this version"
        ) from error
    except (ValueError, msgspec.MsgspecError) as error:
        # Bytes on disk and on the wire are checksummed, so these were written like this.
        raise EntryTooNew(f"entry {index} was written by a newer version of sockpqd ({error}): "
                          "start that version on this node") from error


class Execution:
    """Executes committed entries for the Raft library, and extends the hash chain by each of them."""

    def __init__(
        self, machine: Machine, chain: Chain, mirror_chain: Chain, listener: ClusterListener,
        monotonic: Callable[[], float],
    ) -> None:
        """`mirror_chain`: of the origin, in a replica.

        `listener` gets the events of each entry that has any of a recorded type, and hears of each entry that has
        replaced the state that is read.
        """
        self.took_s = 0.0               # for the last entry
        self._monotonic = monotonic
        self._machine = machine
        self._chain = chain
        self._mirror_chain = mirror_chain
        self._listener = listener
        self._replaced = machine.replaced

    def apply(self, index: int, data: bytes) -> Applied | None:
        """Execute one committed entry; None: it has been executed.

        Raises EntryTooNew, EntryTooOld, OutOfMemory, ApplyFailed, PageLost and OSError (of the disk that pages are
        on), all of which must end this node: an entry is never skipped, because a replica without it would differ.
        """
        if index <= self._machine.index:
            return None                         # the library repeats an entry when its callback raised (H5b)
        begun = self._monotonic()
        try:
            applied = self._execute(index, data)
        except MemoryError as error:
            raise OutOfMemory(f"no memory to execute entry {index}: start this node again") from error
        self.took_s = self._monotonic() - begun
        return applied

    def _execute(self, index: int, data: bytes) -> Applied:
        entry = decoded(index, data)
        try:
            applied = self._machine.apply(index, entry.now_ms, entry.seed, entry.operations)
        except (MemoryError, PageLost, OSError):
            raise               # what fails is the machine's memory, or the disk to which a command writes its pages
        except Exception as error:
            # Neither its bytes nor the exception's message, as both may contain jobs.
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed = self._machine.failed
            verb = "time" if failed is None else name_of(failed)      # None: what is due by time
            log.critical(
                "entry %d (%s) cannot be applied: %s in %s, line %d. It is committed and never skipped, so this node "
                "stops, and tries it again when it is started. If only this node fails on it, replace the node; if "
                "others do, upgrade all. Report it, with this line", index, verb, type(error).__name__,
                place.filename, place.lineno, extra={"fields": {"entry": index, "verb": verb}})
            raise ApplyFailed(f"entry {index} ({verb}) cannot be applied") from error
        level, known = self._machine.level, self._machine.known_level
        if level > known:
            raise EntryTooNew(f"entry {index} raises the cluster to feature level {level}, this version of sockpqd "
                              f"knows levels up to {known}: start a newer one on this node")
        if applied.mirrored is None:
            digests = digests_of(applied.replies)
        else:
            digests = _digests(applied.replies, applied.mirrored)
            self._extend_mirror(applied.mirrored)
        self._chain.extend(index, data, digests)
        if self._machine.replaced != self._replaced:
            self._replaced = self._machine.replaced
            if self._machine.mirrored is None:
                self._mirror_chain.start(0, bytes(DIGEST_BYTES))        # promoted
            self._listener.state_replaced()
        if applied.events:
            self._listener.events(applied.events)
        while self._machine.crowded and self._machine.page_out():
            pass                # at a start, or when entries come faster than jobs leave memory between turns
        return applied

    def _extend_mirror(self, steps: list[FromOrigin]) -> None:
        """Extend the chain of the origin by what was executed on the mirror."""
        for step in steps:
            if step.data:
                self._mirror_chain.extend(step.index, step.data, _digests(step.replies, step.mirrored))
            else:
                self._mirror_chain.begin_at(step.index, step.hash)


def _digests(replies: list[Reply], mirrored: list[FromOrigin] | None) -> list[object]:
    """Return what the chain covers of an entry's replies, and of those on the mirror, which replicas must have too."""
    found = digests_of(replies)
    for step in mirrored or ():
        found += _digests(step.replies, step.mirrored)
    return found
