"""The return of a node without its files: it sets damaged ones aside and rejoins like one with an empty disk.

A node whose files leave no room for the leader's state (capacity.py) deletes them and comes back in the same way.

It has then forgotten what it acknowledged and for whom it voted, so it neither votes nor counts until a leader has
brought it up to date and admitted it (raft/voter_admission.py). Nothing acknowledged is lost while the other nodes are
intact, as a majority without this node has it. Unlike an empty node it never founds a cluster, not even with other
empty nodes: if all of them came back like that, the loss of everything would go unnoticed.

The file `rejoins` in the data directory records all this. The decision to set files aside is recorded before the first
of them is moved, so a crash in between does no harm. A running node that found damage also records it before it ends,
because some damage (restored older copies of the files) shows only in the reports of other nodes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import IN_USE, START_EMPTY, RejoinNeeded, StorageDamaged, StorageInUse

log = logging.getLogger("sockpqd.cluster")

Opened = TypeVar("Opened")

HOUR_S = 3600
_LOCK = "lock"              # of the journal's directory; it holds no data


class RejoinRecord(Struct):
    """The contents of the file, as JSON."""

    times: list[int] = []       # when the node rejoined in the last hour, Unix seconds
    folders: list[str] = []     # with files set aside, the newest last; names in the data directory
    damage: str = ""            # why the files of now must still be moved into the newest folder; "": they need not
    delete: bool = False        # they must be deleted instead, or were
    waiting: bool = False       # the node has forgotten its promises, and was not admitted since


class Rejoin:
    """Moves damaged files out of use. `waiting`: see RejoinRecord."""

    def __init__(self, disk: Disk, settings: NodeSettings, now_s: Callable[[], int]) -> None:
        """Read the file; an unreadable one counts as the file of a waiting node. `now_s()`: Unix time.

        Raises OSError.
        """
        self._disk = disk
        self._data_dir = settings.data_dir
        self._may = settings.rejoin
        self._per_hour = settings.rejoins_per_hour
        self._now_s = now_s
        self._file = settings.data_dir / "rejoins"
        self._record = self._read()

    @property
    def waiting(self) -> bool:
        """True if this node has lost its promises (votes, acknowledgements) and was not admitted since."""
        return self._record.waiting

    @property
    def folder(self) -> str:
        """The folder of the files that were set aside last; "" if there are none."""
        return str(self._data_dir / self._record.folders[-1]) if self._record.folders else ""

    def open(self, files: Callable[[], Opened]) -> Opened:
        """Open the storage by `files`, setting it aside first if it is damaged.

        Raises the errors of `files`, including StorageDamaged if this node cannot or may not rejoin.
        """
        if self._record.damage:
            self._set_aside()
        try:
            return files()
        except StorageDamaged as error:
            self._begin(error)
        self._set_aside()
        return files()

    def order(self, error: StorageDamaged) -> Exception:
        """Have the next start set the files aside; returns the error with which the running node must end."""
        try:
            self._begin(error)
        except (StorageDamaged, OSError) as refusal:
            return refusal
        return RejoinNeeded(f"{_what(error)} Started again, this node sets its files aside and rejoins the others.")

    def delete(self, why: str) -> RejoinNeeded | None:
        """Have the next start delete all files; returns the error with which the running node must end.

        None: the node may not rejoin, or not so often, or there is no room to record it; nothing has changed.
        """
        before = self._record
        self._record = structs.replace(before, times=[*before.times], folders=[*before.folders])
        try:
            self._begin(StorageDamaged(why), delete=True)
        except (StorageDamaged, OSError) as refusal:
            # What is on the disk counts at the next start: a note may be there although its directory was not synced.
            if isinstance(refusal, StorageDamaged) or not self._may_be_noted():
                self._record = before
                log.warning("%s The node keeps them: %s", why, refusal)
                return None
        return RejoinNeeded(f"{why} Started again, this node deletes them and rejoins the others.")

    def _may_be_noted(self) -> bool:
        try:
            return self._read().delete
        except OSError:
            return True

    def forget_damaged(self) -> bool:
        """Delete all files that were set aside; returns False if there are none, or they cannot be deleted."""
        if not self._record.folders or self._record.damage:
            return False
        try:
            self._delete_folders(keep=0)
            self._write()
        except OSError as error:
            log.warning("the files that were set aside as damaged cannot be deleted: %s", error)
            return False
        log.warning("the disk is short of room for the state that another node sends: the files that were set aside as "
                    "damaged are deleted. A majority of the nodes has all that this node has acknowledged.")
        return True

    def tell(self, journal: Journal) -> None:
        """Record in the opened journal whether this node has forgotten its promises and was not admitted since."""
        record = self._record
        if record.waiting and journal.voter:
            record.waiting = record.delete = False
            self._write()
        journal.forgetful, journal.deleted = record.waiting, record.delete

    def _begin(self, error: StorageDamaged, *, delete: bool = False) -> None:
        """Durably decide to rejoin because of this damage. Raises StorageDamaged if this node may not.

        `delete`: the files are deleted, not set aside.
        """
        if not self._may:
            raise error
        record, now_s = self._record, self._now_s()
        record.times = [time_s for time_s in record.times if now_s - HOUR_S < time_s <= now_s]
        if self._per_hour and len(record.times) >= self._per_hour:
            raise StorageDamaged(
                f"{_what(error)} It has rejoined {len(record.times)} times within an hour and does not do so again by"
                f" itself (node.rejoins_per_hour = {self._per_hour}): check its disk and memory first. {START_EMPTY}"
            ) from error
        newest = record.folders[-1] if record.folders else "damaged-0"
        if not delete:
            record.folders.append(f"damaged-{max(now_s, int(newest.partition('-')[2]) + 1)}")
        record.times.append(now_s)
        record.damage, record.delete, record.waiting = _what(error), delete, True
        self._write()
        log.error("%s", record.damage)

    def _set_aside(self) -> None:
        """Move away or delete all files of the journal, the snapshots and the pages. Raises StorageInUse and OSError.
        """
        record, disk = self._record, self._disk
        folder = None if record.delete else self._data_dir / record.folders[-1]
        if folder is not None:
            disk.make_directory(folder)
        journal = self._data_dir / "journal"
        disk.make_directory(journal)
        lock = disk.lock(journal / _LOCK)
        if lock is None:
            raise StorageInUse(f"{journal} {IN_USE}")
        try:
            for directory in (journal, self._data_dir / "snapshots", self._data_dir / "pages"):
                disk.make_directory(directory)
                for name in disk.names(directory):
                    if name == _LOCK:
                        continue
                    if folder is None:
                        disk.unlink(directory / name)
                    else:
                        disk.rename(directory / name, folder / name)
                if folder is not None:
                    disk.sync_directory(folder)
                disk.sync_directory(directory)
        finally:
            disk.close(lock)
        record.damage = ""
        self._delete_folders(keep=limits.DAMAGED_KEPT)
        self._write()
        if folder is None:
            log.warning("the files of this node are deleted. It rejoins the others, which bring it up to date; it does "
                        "not vote until then. Nothing is lost: they have all that it had.")
            return
        log.error(
            "the damaged files of this node are in %s now. It rejoins the others, which bring it up to date; it does"
            " not vote until then. Nothing is lost while they are whole. Check the disk of this node.", folder,
        )

    def _delete_folders(self, keep: int) -> None:
        record, disk = self._record, self._disk
        old = record.folders[:max(0, len(record.folders) - keep)]
        for name in old:
            folder = self._data_dir / name
            with contextlib.suppress(FileNotFoundError):
                for file in disk.names(folder):
                    disk.unlink(folder / file)
                disk.remove_directory(folder)
        record.folders = record.folders[len(old):]

    def _read(self) -> RejoinRecord:
        there = self._file.name in self._disk.names(self._data_dir)
        self._disk.trust(self._data_dir, [self._file.name] if there else [])
        if not there:
            return RejoinRecord()
        file = self._disk.open(self._file)
        try:
            return msgspec.json.decode(self._disk.read(file, self._disk.size(file), 0), type=RejoinRecord)
        except msgspec.DecodeError:
            return RejoinRecord(waiting=True)
        finally:
            self._disk.close(file)

    def _write(self) -> None:
        disk, temporary = self._disk, Path(f"{self._file}.tmp")
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(temporary)
        file = disk.create(temporary)
        try:
            disk.write(file, [msgspec.json.encode(self._record)], 0)
            disk.sync(file)
        finally:
            disk.close(file)
        disk.rename(temporary, self._file)
        disk.sync_directory(self._data_dir)


def _what(error: StorageDamaged) -> str:
    """Return the part of the message that names the damage, without the advice for operators."""
    return str(error).removesuffix(START_EMPTY).rstrip()
