"""The checks of `pqctl doctor` on a node's machine: its disk and its process."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from sockpq.interpreter import how_built

from sockpqd.pqctl.doctor import files
from sockpqd.pqctl.doctor.check import FAIL, OK, WARN, Check
from sockpqd.pqctl.output.text import sized

FSYNCS = 200
FSYNCS_S = 2.0                  # stop measuring after this long
WRITE_BYTES = 4096
SLOW_MS = 10.0                  # p99; the same as etcd recommends
TOO_SLOW_MS = 100.0             # takes up a good part of the election timeout (600 ms)
FREE_BYTES_WARN, FREE_BYTES_FAIL = 2 << 30, 256 << 20
FREE_SHARE_WARN = 0.1
CONNECTIONS = 10_000            # the default of limits.connections_max
OTHER_FILES = 200               # journal, snapshots, peers
LOCK = "journal/lock"           # a running node keeps it open
IN_MEMORY = ("tmpfs", "ramfs")


def data_directory(name: str) -> Path:
    """Resolve the data directory; raises click.UsageError if there is none."""
    if not name:
        raise click.UsageError("--data-dir: the name is empty")
    try:
        path = Path(name).resolve(strict=True)
        if path.is_dir():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise click.UsageError(f"--data-dir {name}: {getattr(error, 'strerror', None) or error}") from error
    raise click.UsageError(f"--data-dir {name}: not a directory")


def look(data_dir: Path) -> list[Check]:
    """Run all checks of this machine."""
    checks = [
        file_system(data_dir), fsync(data_dir), free_space(data_dir), memory(data_dir), open_files(data_dir),
        interpreter(), *files.look(data_dir, _process_of(data_dir)),
    ]
    return [check for check in checks if check is not None]


def file_system(data_dir: Path) -> Check | None:
    """Check that the data directory is on a disk, not in memory."""
    kind = _file_system_of(data_dir)
    if kind in IN_MEMORY:
        return Check(FAIL, "file system", f"{data_dir} is on {kind}, in memory: a reboot loses it", "use a disk")
    return None if kind is None else Check(OK, "file system", kind)


def fsync(data_dir: Path) -> Check:
    """Measure how long the disk takes to sync, which every acknowledged job waits for."""
    try:
        times_ms = sorted(1000 * second for second in _fsyncs(data_dir))
    except OSError as error:
        return Check(WARN, "fsync", f"could not be measured: {error.strerror}",
                     "run this as the node's user or as root; is the disk full?")
    p50, p99 = (times_ms[max(-(-len(times_ms) * percent // 100) - 1, 0)] for percent in (50, 99))
    found = f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {times_ms[-1]:.2f} ms ({len(times_ms)} writes of 4 KiB)"
    if p99 > SLOW_MS:
        state = FAIL if p99 > TOO_SLOW_MS else WARN
        return Check(state, "fsync", found, "a local SSD of its own does it in less than 10 ms; what else uses it?")
    return Check(OK, "fsync", found)


def _fsyncs(data_dir: Path) -> Iterator[float]:
    """Yield the seconds of each write and fdatasync to a preallocated file, as done by the journal."""
    path = data_dir / f".pqctl-doctor-{secrets.token_hex(4)}"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, FSYNCS * WRITE_BYTES)
            os.fsync(file)
            block = secrets.token_bytes(WRITE_BYTES)
            until = time.monotonic() + FSYNCS_S
            for number in range(FSYNCS):
                begun = time.perf_counter()
                os.pwrite(file, block, number * WRITE_BYTES)
                os.fdatasync(file)
                yield time.perf_counter() - begun
                if time.monotonic() > until:
                    return
        finally:
            os.close(file)
    finally:
        path.unlink(missing_ok=True)


def free_space(data_dir: Path) -> Check:
    """Check that the disk has room."""
    disk = os.statvfs(data_dir)
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    found = f"{sized(free)} of {sized(size)} free"
    advice = "make room: without it the cluster takes no further jobs"
    if free < FREE_BYTES_FAIL:
        return Check(FAIL, "free space", found, advice)
    if free < FREE_BYTES_WARN or free < size * FREE_SHARE_WARN:
        return Check(WARN, "free space", found, advice)
    return Check(OK, "free space", found)


def memory(data_dir: Path) -> Check | None:
    """Check that a snapshot can be written: a forked child of the node copies nearly all that is in its memory."""
    process = _process_of(data_dir)
    used = None if process is None else _kib(Path(f"/proc/{process}/status"), "VmRSS:")
    available = _kib(Path("/proc/meminfo"), "MemAvailable:")
    if used is None or available is None:
        return None
    found = (f"process {process} uses {sized(used * 1024)}, and may need as much again while it writes a snapshot; "
             f"{sized(available * 1024)} are available")
    if used > available:
        return Check(WARN, "memory", found, "lower limits.memory_mark, keep more waiting jobs on the disk "
                     "(limits.hot_bytes), or add memory")
    return Check(OK, "memory", found)


def _kib(file: Path, name: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return None


def open_files(data_dir: Path) -> Check:
    """Check that the node can open a file for each client."""
    process = _process_of(data_dir)
    if process is None:
        return Check(WARN, "open files", f"no running node uses {data_dir}",
                     "start the node, and run this as its user or as root")
    limit = _open_files_max(process)
    if limit is None:
        return Check(WARN, "open files", f"the limit of process {process} cannot be read", "run this as root")
    found = f"process {process} may open {'any number of' if limit == float('inf') else f'{limit:,.0f}'} files"
    if limit < CONNECTIONS + OTHER_FILES:
        return Check(WARN, "open files", found,
                     f"raise LimitNOFILE above limits.connections_max ({CONNECTIONS:,} if not configured)")
    return Check(OK, "open files", found)


def interpreter() -> Check:
    """Report the interpreter and how it was built, which affects the processor time of everything."""
    built = how_built()
    found = f"Python {platform.python_version()}, {built}"
    if not built.startswith("optimized"):
        found += ": distributions' usually are and need up to 30% less processor time, pyenv's are not by default"
    return Check(OK, "interpreter", found)


def _process_of(data_dir: Path) -> int | None:
    """Return the process that has locked this directory; others that have files open in it are not the node."""
    lock = f"{data_dir}/{LOCK}"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for file in os.listdir(process / "fd"):
                with suppress(OSError):
                    if os.readlink(process / "fd" / file) == lock:
                        return int(process.name)
    return None


def _open_files_max(process: int) -> float | None:
    """Return the hard limit on open files, since the node raises its soft limit itself."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process}/limits").read_text().splitlines():
            if line.startswith("Max open files"):
                hard = line.split()[4]
                return float("inf") if hard == "unlimited" else float(hard)
    return None


def _file_system_of(path: Path) -> str | None:
    """Return the type of the file system that `path` is on."""
    best, kind = "", None
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, where, what, *_ = line.split(" ")
            if len(where) >= len(best) and path.is_relative_to(where):
                best, kind = where, what
    return kind
