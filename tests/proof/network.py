"""Machines in network namespaces, each connected to one router that can lose the packets of any pair. Needs root.

    with Network(["n1", "n2", "n3"]) as network:
        subprocess.run([*network.enter("n1"), "sockpqd", ..])       # its address: network.address("n1")
        network.lose({("n1", "n2")})                                # what n1 sends to n2 is lost, not what n2 sends

The program itself is one of these machines, CLIENTS, and must run in namespaces of its own, as the command OWN makes:
processes, mounts and devices in them end with the program, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

CLIENTS = "clients"
NODES, ROUTER, ALL = "10.77.0", "10.77.1", "10.77.0.0/16"     # the last number is the machine's
WIRE = "wire"
OWN = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
CLIENTS_NUMBER = 100
WAIT_S = 10.0

Pair = tuple[str, str]                      # the sender and the receiver of packets


class Network:
    """The machines `names` and CLIENTS, which reach each other until `lose` is called."""

    def __init__(self, names: Iterable[str]) -> None:
        """Nothing is created before the block begins. `names`: at most 99."""
        self._numbers = {name: number for number, name in enumerate(names, 1)} | {CLIENTS: CLIENTS_NUMBER}
        self._holders: dict[str, subprocess.Popen[bytes]] = {}      # a process that keeps each namespace
        self._lost: frozenset[Pair] = frozenset()

    def __enter__(self) -> Self:
        if not alone():
            raise OSError("this process has network devices: it must run in a namespace of its own (OWN)")
        try:
            run(["ip", "link", "set", "dev", "lo", "up"])
            router = self._hold("router")
            run([*router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"])
            for name in self._numbers:
                self._connect(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove all machines; no process may be left in them."""
        if not self._holders:
            return
        for holder in self._holders.values():
            holder.kill()
            holder.wait()
        self._holders.clear()
        subprocess.run(["ip", "link", "del", "dev", WIRE], check=False, capture_output=True)    # its routes go with it

    def address(self, name: str) -> str:
        """The IP address of this machine."""
        return f"{NODES}.{self._numbers[name]}"

    def enter(self, name: str) -> Sequence[str]:
        """A command that executes the program given as its arguments on this machine, as `env` does."""
        return [] if name == CLIENTS else ["nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net", "--"]

    def processes(self, name: str) -> list[int]:
        """The ids of the processes on this machine, which must not be CLIENTS."""
        holder = self._holders[name].pid
        space = os.readlink(f"/proc/{holder}/ns/net")
        found = []
        for pid in (int(one) for one in os.listdir("/proc") if one.isdigit()):
            with contextlib.suppress(OSError):              # it has ended
                if pid != holder and os.readlink(f"/proc/{pid}/ns/net") == space:
                    found.append(pid)
        return found

    @property
    def lost(self) -> frozenset[Pair]:
        """The pairs of machines whose packets are lost now."""
        return self._lost

    def lose(self, pairs: Iterable[Pair]) -> None:
        """Lose the packets of exactly these pairs from now on, without a word to the sender; of none when empty."""
        wanted = frozenset(pairs)
        lines = [f"rule add pref 100 {self._rule(pair)}" for pair in sorted(wanted - self._lost)]
        lines += [f"rule del pref 100 {self._rule(pair)}" for pair in sorted(self._lost - wanted)]
        if lines:
            run([*self.enter("router"), "ip", "-batch", "-"], "\n".join(lines) + "\n")
        self._lost = wanted

    def _rule(self, pair: Pair) -> str:
        return f"from {self.address(pair[0])} to {self.address(pair[1])} blackhole"

    def _hold(self, name: str) -> Sequence[str]:
        before = os.readlink("/proc/self/ns/net")
        holder = self._holders[name] = subprocess.Popen(
            ["unshare", "--net", "--", "sleep", "infinity"], stdin=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + WAIT_S
        while os.readlink(f"/proc/{holder.pid}/ns/net") == before:
            if holder.poll() is not None or time.monotonic() > until:
                raise OSError(f"there is no network namespace for {name}")
            time.sleep(0.005)
        run([*self.enter(name), "ip", "link", "set", "dev", "lo", "up"])
        return self.enter(name)

    def _connect(self, name: str) -> None:
        """Lay a wire from this machine to the router."""
        number, router = self._numbers[name], self.enter("router")
        inside = [] if name == CLIENTS else self._hold(name)
        place = str(os.getpid() if name == CLIENTS else self._holders[name].pid)
        device, gateway, own = f"to-{number}", f"{ROUTER}.{number}", self.address(name)
        run(["ip", "link", "add", WIRE, "netns", place, "type", "veth", "peer", "name", device, "netns",
             str(self._holders["router"].pid)])
        run([*router, "ip", "-batch", "-"], (
            f"link set dev {device} up\naddr add {gateway}/32 dev {device}\n"
            f"route add {own}/32 dev {device} src {gateway}\n"))
        run([*inside, "ip", "-batch", "-"], (
            f"addr add {own}/32 dev {WIRE}\nlink set dev {WIRE} up\n"
            f"route add {ALL} via {gateway} dev {WIRE} onlink\n"))


def alone() -> bool:
    """Return whether this process is in a namespace without any device but loopback, as OWN makes it."""
    return all(line.split()[1].rstrip(":") == "lo" for line in run(["ip", "-o", "link"]).splitlines())


def run(command: Sequence[str], words: str = "") -> str:
    """Execute a command of the system and return its output. Raises OSError with its message when it fails."""
    try:
        done = subprocess.run(command, input=words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError(f"there is no {command[0]}") from error
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()
