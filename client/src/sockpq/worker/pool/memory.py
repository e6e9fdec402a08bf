"""Memory in use: of the machine or of the container that this process is in, and of one child."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from sockpq.errors import BadArguments

LOG = logging.getLogger("sockpq.worker")

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
LOOK_S = 0.5
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class MemoryShare:
    """Decides whether the pool may grow: only while all programs together use no more than this share of the memory."""

    def __init__(self, share: float | None, used: Callable[[], float] | None = None) -> None:
        """`share`: 0 to 1, None for no bound; `used`: returns the share in use, 0 to 1."""
        self.share = share
        self._used = used or used_share
        self._seen_at = -LOOK_S
        self._seen = 0.0
        self._stops = False

    def may_grow(self) -> bool:
        """Return whether less memory is used than the share."""
        if self.share is None:
            return True
        now = monotonic()
        if now - self._seen_at >= LOOK_S:       # it is asked at each message
            self._seen_at, self._seen = now, self._used()
        return self._seen < self.share

    def report(self, size: int, most: int, is_short: bool) -> None:
        """Log that growth has stopped or continues.

        `size`, `most`: the current and maximum number of children; `is_short`: more of them would have work.
        """
        stops = is_short and not self.may_grow()
        if stops and not self._stops:
            LOG.warning(
                "the pool stays at %d of %d children: %.0f%% of the memory is used, and with --memory-share %.0f%% it "
                "does not grow above that", size, most, self._seen * 100, (self.share or 0) * 100,
            )
        elif self._stops and not stops and self.may_grow():
            LOG.info("the pool may grow again: %.0f%% of the memory is used", self._seen * 100)
        self._stops = stops or (self._stops and not self.may_grow())


def used_share(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> float:
    """Return the used share of the machine's memory, or if that is greater, of the container's limit; 0 to 1."""
    shares = [0.0]
    fields = dict(line.split(":", 1) for line in _text(meminfo).splitlines() if ":" in line)
    total, available = (_kib(fields.get(name, "0")) for name in ("MemTotal", "MemAvailable"))
    if total:
        shares.append(1 - available / total)
    most, current = _text(cgroup / "memory.max").strip(), _text(cgroup / "memory.current").strip()
    if most.isdigit() and current.isdigit() and int(most):
        shares.append((int(current) - _reclaimable(cgroup)) / int(most))
    return max(shares)


def size_bytes(text: str) -> int:
    """Parse a size such as "200M", "1.5G" or "1048576" (bytes); raises BadArguments."""
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), ""
    if number and number[-1] in UNITS:
        number, unit = number[:-1], number[-1]
    try:
        size = int(float(number) * UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise BadArguments(f"{text!r} is not a size: 200M, 1.5G")
    return size


def share_of(text: str) -> float:
    """Parse a share such as "60%"; raises BadArguments."""
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1 or not text.strip().endswith("%"):
        raise BadArguments(f"{text!r} is not a share: 60%")
    return share


def _reclaimable(cgroup: Path) -> int:
    """Return the bytes of files' pages not used recently: they count as used, but can be reclaimed."""
    for line in _text(cgroup / "memory.stat").splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def _kib(text: str) -> int:
    word = text.split()[0] if text.split() else "0"
    return int(word) if word.isdigit() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
