"""The disk of a simulated machine: FaultyDisk, with faults that the simulation switches on and off."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from sockpqd.cluster.storage.disk import NamesNotSynced
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk, durable_bytes

JOURNAL = Path("/journal")
SNAPSHOTS = Path("/snapshots")
PAGES = Path("/pages")
FILES = (f"{JOURNAL}/", f"{SNAPSHOTS}/", f"{PAGES}/")
LOCK = "lock"


BESIDE_S = (*(0.0, 0.002, 0.05) * 10, 1.0)    # the duration of a background sync,
WELL_S = (0.0, 0.002)                       # and when nothing is wrong any more


SLOWER, SLOWER_TIMES = 0.05, 10     # of all syncs so many take so much longer than usual,
STALLS, STALL_S = 0.002, 0.4        # and so many as long as this, unless nothing is wrong any more


class SyncTimes:
    """The durations of a disk's syncs: mostly about `usual_s`, sometimes ten times that, and now and then a stall."""

    def __init__(self, rng: random.Random, usual_s: float) -> None:
        self._rng = rng
        self._usual_s = usual_s
        self.stalls = STALLS

    def next_s(self) -> float:
        """Return the seconds that the next sync takes."""
        drawn = self._rng.random()
        if drawn < self.stalls:
            return STALL_S
        return self._usual_s * self._rng.uniform(0.5, 1.5) * (SLOWER_TIMES if drawn > 1 - SLOWER else 1)


class SlowSync(Future[Any]):
    """One or more syncs in the background. Nothing is durable before the node has seen their end."""

    def __init__(self, disk: SimDisk, work: Callable[[], None], over_at: float) -> None:
        super().__init__()
        self.over_at = over_at
        self._takes_s = over_at - disk.now()
        self._disk = disk
        self._work = work

    def done(self) -> bool:
        return self._disk.now() >= self.over_at

    def result(self, timeout: float | None = None) -> float:
        disk = self._disk
        waited_s = max(0.0, self.over_at - disk.now())
        spent_s = disk.spent_s
        self._work()
        disk.spent_s = spent_s + waited_s               # it takes no time of its own
        return self._takes_s


class SimDisk(FaultyDisk):
    """Loses, tears, fails, fills up and dawdles.

    `crash_in`: the machine dies before that many further steps (1: the next one). `slow_s`: what each sync takes, added
    up in `spent_s`; while it is 0 `times` tell. `errors`: how many errors were raised. `now()`: seconds. What a failed
    sync has not written is shown as if it had, and later syncs succeed without it (cached_file.py).
    """

    def __init__(self, rng: random.Random, now: Callable[[], float], times: SyncTimes | None = None) -> None:
        super().__init__()
        self.now = now
        self._rng = rng
        self.crash_in: int | None = None
        self.dead = False
        self.slow_s = 0.0
        self._times = times
        self._beside_s: tuple[float, ...] = BESIDE_S
        self._preparation: SlowSync | None = None       # the last one, perhaps still in progress
        self.spent_s = 0.0
        self._failing: dict[str, tuple[int, int]] = {}      # operation -> how often it is to fail, and with what
        self._reaching = 0.0                    # the part of a failed sync's data that still reaches the disk
        self.errors = 0

    def fail_next(self, operation: str, code: int, *, times: int = 1, reaching: float = 0.0) -> None:
        """Let the next operations of this kind fail: "write", "sync" or "sync_directory"."""
        self._failing[operation] = times, code
        self._reaching = reaching

    def reaches_disk(self) -> bool:
        return self._rng.random() < self._reaching

    def step(self) -> None:
        """Pass a point at which the machine may die; sending a message is one as well."""
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in <= 0:
                self.dead = True
        if self.dead:
            raise Crash

    def _step(self, operation: str) -> None:
        self.step()
        if operation == "sync":
            self.spent_s += self.slow_s or (0.0 if self._times is None else self._times.next_s())
        times, code = self._failing.get(operation, (0, 0))
        if times:
            self._failing[operation] = times - 1, code
            self.errors += 1
            raise OSError(code, os.strerror(code))

    def forget(self, file: int, length: int, offset: int) -> None:
        self._open[file].drop_cache()

    def drop_caches(self) -> None:
        """Drop the page cache: from now on all files show what is on the disk, except for what is not synced."""
        for shown in self.names_now.values():
            shown.drop_cache()

    def _use_space(self, length: int) -> None:
        try:
            super()._use_space(length)
        except OSError:
            self.errors += 1
            raise

    def sync_in_background(self, file: int) -> SlowSync:
        return SlowSync(self, lambda: self.sync(file), self.now() + self._takes_s())

    def prepare_in_background(self, file: int, size: int, directory: Path) -> SlowSync:
        work = SlowSync(self, lambda: self.prepare_now(file, size, directory), self.now() + self._takes_s())
        self._preparation = work
        return work

    def _takes_s(self) -> float:
        if self.slow_s:
            return self.slow_s
        return self._rng.choice(self._beside_s) if self._times is None else self._times.next_s()

    def restart(self) -> None:
        """Start a new process on the same disk."""
        super().restart()
        self.crash_in, self.dead, self.errors = None, False, 0
        self._failing.clear()

    def repair(self) -> None:
        """Repair the disk: what was lost stays lost."""
        self._beside_s = WELL_S
        if self._preparation is not None:
            self._preparation.over_at = min(self._preparation.over_at, self.now() + WELL_S[-1])
        if self._times is not None:
            self._times.stalls = 0.0
        self.trouble_free()

    def trouble_free(self) -> None:
        """True if no fault is pending."""
        self.slow_s, self.free_bytes, self.crash_in = 0.0, None, None
        self._failing.clear()

    def copied(self) -> dict[str, Any]:
        """Return a copy of what is durable in the node's files."""
        files = {name: file for name, file in self.names_durable.items() if name.startswith(FILES)}
        copies = {name: copy.deepcopy(file) for name, file in files.items()}
        for file in copies.values():
            file.data, file.unsynced, file.failed = durable_bytes(file), [], {}
        return copies

    def put_back(self, copies: dict[str, Any]) -> None:
        """Replace the node's files, none of which is open, by the copy's."""
        others = {name: file for name, file in self.names_now.items() if not name.startswith(FILES)}
        self.names_now = {**others, **copies}
        self.names_durable = dict(self.names_now)
        self._changes.clear()

    def damage(self, rng: random.Random) -> str:
        """Change a bit of a file, cut its end off, swap or lose files; returns what was done, "" for nothing.

        All of that a node notices by itself. The newest file of the journal stays: a journal without its end looks
        whole.
        """
        all_paths = (path for folder in (JOURNAL, SNAPSHOTS, PAGES) for path in self.paths(folder))
        paths = [path for path in all_paths if self.file(path).strip(b"\0")]
        if not paths:
            return ""
        older = [path for path in paths if path.parent == JOURNAL and path.name != LOCK][:-1]
        if older and rng.random() < 0.2:
            return self._swap_or_lose(rng.choice(older), rng)
        path = rng.choice(paths)
        data = self.file(path)
        used = len(data.rstrip(b"\0"))
        if rng.random() < 0.2:
            cut = rng.randrange(used)
            del data[cut:]
            return f"{path} cut at {cut}"
        place, bit = rng.randrange(used), rng.randrange(8)
        data[place] ^= 1 << bit
        return f"bit {bit} of byte {place} in {path}"

    @property
    def has_pages(self) -> bool:
        """True if files of pages would survive the end of the machine."""
        return any(Path(name).parent == PAGES and file.synced_bytes for name, file in self.names_durable.items())

    def damage_pages(self, rng: random.Random) -> str:
        """Change a bit of some files of pages, cut their ends off, swap or lose them; returns what was done."""
        paths = [path for path in self.paths(PAGES) if self.file(path)]
        now, done = self.names_now, []
        for path in rng.sample(paths, min(len(paths), rng.randint(1, 3))):
            other = rng.choice(paths)
            how = rng.randrange(4)
            data = self.file(path)
            if how == 0:
                del now[str(path)]
                done.append(f"{path} is missing")
            elif how == 1 and other != path and str(other) in now:
                now[str(path)], now[str(other)] = now[str(other)], now[str(path)]
                done.append(f"{path} and {other} are swapped")
            elif how == 2:
                cut = rng.randrange(len(data))
                del data[cut:]
                done.append(f"{path} cut at {cut}")
            elif data:
                place, bit = rng.randrange(len(data)), rng.randrange(8)
                data[place] ^= 1 << bit
                done.append(f"bit {bit} of byte {place} in {path}")
        self.names_durable = dict(now)
        return ", ".join(done)

    def _swap_or_lose(self, path: Path, rng: random.Random) -> str:
        if rng.random() < 0.5:
            del self.names_now[str(path)]
            self.names_durable = dict(self.names_now)
            return f"{path} is missing"
        other = rng.choice([other for other in self.paths(JOURNAL) if other not in (path, JOURNAL / LOCK)])
        now = self.names_now
        now[str(path)], now[str(other)] = now[str(other)], now[str(path)]
        self.names_durable = dict(now)
        return f"{path} and {other} are swapped"

    def names(self, directory: Path) -> list[str]:
        folder = f"{directory}".rstrip("/") + "/"
        return sorted(name[len(folder):] for name in self.names_now if name.startswith(folder))

    def sync_directory(self, directory: Path) -> None:
        try:
            self._step("sync_directory")
        except OSError as error:
            raise NamesNotSynced(*error.args) from error
        folder = f"{directory}".rstrip("/")
        later = []
        for change in self._changes:
            removed, given, file = change
            if (removed or given).rpartition("/")[0] != folder:
                later.append(change)
                continue
            self.names_durable.pop(removed, None)
            if given:
                self.names_durable[given] = file
        self._changes = later

    def random_bytes(self, count: int) -> bytes:
        return self._rng.randbytes(count)
