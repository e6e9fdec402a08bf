"""Machines of the proof: packets that are lost one way, power that is lost. They need root and namespaces."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof import power
from tests.proof.network import OWN

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0

PACKETS = """
import socket, subprocess, sys
from tests.proof.network import CLIENTS, Network, run

def arrives(network, sender, receiver):
    server = subprocess.Popen([*network.enter(receiver), sys.executable, "-c", f'''if True:
        import socket
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("{network.address(receiver)}", 7))
        print("bound", flush=True)
        one.settimeout(SECONDS)
        try:
            print(one.recv(9).decode(), flush=True)
        except TimeoutError:
            print("nothing", flush=True)
    '''.replace("SECONDS", "0.3" if (sender, receiver) in network.lost else "60")], stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "bound\\n"
    run([*network.enter(sender), sys.executable, "-c", f'''if True:
        import socket
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"word", ("{network.address(receiver)}", 7))'''])
    return server.communicate()[0].strip()

with Network(["n1", "n2"]) as network:
    assert arrives(network, CLIENTS, "n1") == "word"
    network.lose({("n1", "n2")})
    assert arrives(network, "n1", "n2") == "nothing"
    assert arrives(network, "n2", "n1") == "word"
    network.lose(())
    assert arrives(network, "n1", "n2") == "word"
with Network(["n1"]) as network:                # once more in the same namespace
    assert arrives(network, "n1", CLIENTS) == "word"
print("well")
"""

POWER = """
import os, tempfile
from pathlib import Path
from tests.proof import power

point = Path(tempfile.mkdtemp()) / "disk"
power.mount(point, 16)

def write(name, data, *, sync):
    file = os.open(point / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(file, data)
    if sync:
        os.fsync(file)
    os.close(file)

write("synced", b"a" * 9000, sync=True)
write("synced", b"b" * 9000, sync=False)
write("lost", b"c", sync=False)
assert power.lose(point) >= 1
assert (point / "synced").read_bytes()[:9000] == b"a" * 9000
assert not (point / "lost").exists() or (point / "lost").read_bytes() == b""
write("lost", b"d", sync=True)
power.lose(point)                               # a copy of a copy
assert (point / "lost").read_bytes() == b"d"
print("well")
"""


@functools.cache
def namespaces() -> bool:
    """Return whether OWN works here."""
    return subprocess.run([*OWN, "ip", "link", "add", "name", "one", "type", "veth"], capture_output=True,
                          check=False).returncode == 0


def well(program: str) -> None:
    """Run the program in namespaces of its own, and assert that it ends well."""
    if not namespaces():
        pytest.skip("needs root, network namespaces and the program ip")
    done = subprocess.run([*OWN, sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    assert done.stdout == "well\n", done.stderr


def test_packets_are_lost_one_way_and_arrive_again() -> None:
    well(PACKETS)


def test_power_takes_what_was_not_synced_and_nothing_else() -> None:
    if not power.can_lose():
        pytest.skip("needs root, mkfs.ext4 and loop devices")
    well(POWER)


def test_a_network_is_refused_where_there_are_devices() -> None:
    from tests.proof.network import Network, alone

    if alone():
        pytest.skip("this machine has no network device")
    with pytest.raises(OSError, match="namespace of its own"), Network(["n1"]):
        pass
