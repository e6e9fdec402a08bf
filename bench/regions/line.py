"""A line between two network namespaces that delays packets, loses some of them, or is cut.

    with LongLine() as line:                # origin and replica reach each other at line.near and line.far
        line.set(delay_s=0.1, loss=0.05)
        subprocess.run([*line.enter, "sockpqd", ..])            # on the far side

Each end is a TUN device, and a process of this file passes packets on between the two: neither tc nor nft is needed.
What TCP makes of delay and loss is the kernel's own. Needs root, and a network namespace of its own for this process
(OWN).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import random
import selectors
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

OWN = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
MTU = 1500
QUEUED_PACKETS_MAX = 20_000         # in each direction; a line drops what is more
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
WAIT_S = 10.0


class LongLine:
    """Both ends. `near` and `far` are addresses on the line; `aside` is one of the far side without delay or loss."""

    near, far = "10.78.0.1", "10.78.0.2"
    own, aside = "10.79.0.1", "10.79.0.2"

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None
        self._relay: subprocess.Popen[str] | None = None

    @property
    def enter(self) -> Sequence[str]:
        """A command that executes the program given as its arguments on the far side."""
        assert self._holder is not None
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--"]

    def __enter__(self) -> Self:
        before = os.readlink("/proc/self/ns/net")
        self._holder = subprocess.Popen(["unshare", "--net", "--", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_S
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == before:
            if time.monotonic() > until:
                raise OSError("there is no network namespace for the far side")
            time.sleep(0.005)
        self._relay = subprocess.Popen(
            [sys.executable, "-m", "bench.regions.line", str(self._holder.pid)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        assert self._relay.stdout is not None
        if self._relay.stdout.readline() != "ready\n":
            raise OSError("the devices of the line cannot be made")
        for enter, device, address in (([], "near", self.near), (self.enter, "far", self.far)):
            _run(*enter, "ip", "link", "set", "dev", "lo", "up")
            _run(*enter, "ip", "address", "add", f"{address}/30", "dev", device)
            _run(*enter, "ip", "link", "set", "dev", device, "mtu", str(MTU), "up")
        _run("ip", "link", "add", "own", "type", "veth", "peer", "name", "aside", "netns", str(self._holder.pid))
        for enter, device, address in (([], "own", self.own), (self.enter, "aside", self.aside)):
            _run(*enter, "ip", "address", "add", f"{address}/30", "dev", device)
            _run(*enter, "ip", "link", "set", "dev", device, "up")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        for process in (self._relay, self._holder):
            if process is not None:
                process.kill()
                process.wait()

    def set(self, delay_s: float = 0.0, loss: float = 0.0, cut: bool = False) -> None:
        """Delay each packet by `delay_s` in each direction, lose this share of them, or all."""
        assert self._relay is not None
        assert self._relay.stdin is not None
        self._relay.stdin.write(json.dumps([delay_s, 1.0 if cut else loss]) + "\n")
        self._relay.stdin.flush()


def alone() -> bool:
    """Return whether this process is in a namespace without any device but loopback, as OWN makes it."""
    names = [line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return names == ["lo"]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _device(name: str) -> int:
    """Open a TUN device of this name in the present network namespace."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def relay(far: int) -> None:
    """Pass packets on between a device here and one in the namespace of the process `far`, until killed."""
    near = _device("near")
    with open(f"/proc/{far}/ns/net") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    ends = {near: _device("far")}
    ends[ends[near]] = near
    os.set_blocking(0, False)
    selector = selectors.DefaultSelector()
    for file in (0, *ends):
        selector.register(file, selectors.EVENT_READ)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    delay_s, loss = 0.0, 0.0
    under_way: dict[int, deque[tuple[float, bytes]]] = {end: deque() for end in ends}       # by the end they go to
    while True:
        dues = [packets[0][0] for packets in under_way.values() if packets]
        wait_s = max(0.0, min(dues) - time.monotonic()) if dues else None
        for key, _ in selector.select(wait_s):
            if key.fd == 0:
                lines = os.read(0, 4096).decode().splitlines()
                if not lines:
                    return
                delay_s, loss = json.loads(lines[-1])
                continue
            packets = under_way[ends[key.fd]]
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = os.read(key.fd, 1 << 16)
                    if len(packets) < QUEUED_PACKETS_MAX and random.random() >= loss:
                        packets.append((time.monotonic() + delay_s, packet))
        now = time.monotonic()
        for end, packets in under_way.items():
            while packets and packets[0][0] <= now:
                with contextlib.suppress(OSError):      # the device is full or down: the packet is lost
                    os.write(end, packets[0][1])
                packets.popleft()


if __name__ == "__main__":
    relay(int(sys.argv[1]))
