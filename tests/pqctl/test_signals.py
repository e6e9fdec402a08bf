"""Ended from outside: what was taken is given back, what was begun is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sockpqd.core import Put
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.backup_file import snapshot
from tests.pqctl.running import PATIENCE_S, Terminal, interruptible, start
from tests.waiting import until

NUMBERS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


def wait_for(file: str, folder: Path) -> None:
    """Wait until a file with this in its name is in the folder."""
    until = time.monotonic() + PATIENCE_S
    while not any(file in name for name in os.listdir(folder)):
        assert time.monotonic() < until
        time.sleep(0.001)


def stuck(sync: str) -> str:
    """Return the program with a sync that takes a minute: in short sleeps, as a signal just before one does not end it.
    """
    return (f"import os, time; os.{sync} = lambda _: [time.sleep(0.01) for _ in range(6000)]; "
            "from sockpqd.pqctl.main import main; main()")


SLOW = "begin = threading.Thread.start; threading.Thread.start = lambda self: (begin(self), time.sleep(0.3))"


@pytest.mark.parametrize("machine", ["", SLOW], ids=["quick", "slow"])
@pytest.mark.parametrize("number", [number for number, _ in NUMBERS])
def test_a_signal_in_a_destructor_is_not_lost(number: int, machine: str) -> None:
    program = f"""
import os, threading, time
from sockpqd.pqctl.output.signals import INTERRUPTIONS, orderly
{machine}
class Ended:
    def __del__(self):
        os.kill(os.getpid(), {int(number)})
        time.sleep(0)
try:
    with orderly():
        Ended()
        time.sleep(20)
except INTERRUPTIONS as error:
    print(type(error).__name__)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S,
                           preexec_fn=interruptible)
    assert (ended.stdout, ended.stderr, ended.returncode) == (
        "KeyboardInterrupt\n" if number == signal.SIGINT else "EndedBySignal\n", "", 0)


@pytest.mark.parametrize(("number", "code"), NUMBERS)
def test_a_file_that_is_not_complete_is_removed(number: int, code: int, cluster: MemoryCluster, tmp_path: Path) -> None:
    cluster.show_snapshot(snapshot())
    saving = subprocess.Popen([sys.executable, "-c", stuck("fsync"), "--servers", cluster.addresses[0],
                               "backup", str(tmp_path)], stderr=subprocess.PIPE, preexec_fn=interruptible)
    wait_for(".tmp", tmp_path)
    saving.send_signal(number)
    _, errors = saving.communicate(timeout=PATIENCE_S)
    assert (saving.returncode, errors.strip(), os.listdir(tmp_path)) == (code, b"", [])


@pytest.mark.parametrize(("number", "code"), NUMBERS)
def test_doctor_leaves_nothing_in_the_data_directory(
    number: int, code: int, cluster: MemoryCluster, tmp_path: Path
) -> None:
    measuring = subprocess.Popen([sys.executable, "-c", stuck("fdatasync"), "--servers", cluster.addresses[0],
                                  "doctor", "--data-dir", str(tmp_path)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, preexec_fn=interruptible)
    wait_for(".pqctl-doctor-", tmp_path)
    measuring.send_signal(number)
    _, errors = measuring.communicate(timeout=PATIENCE_S)
    assert (measuring.returncode, errors.strip(), os.listdir(tmp_path)) == (code, b"", [])


@pytest.mark.parametrize(("number", "code"), NUMBERS)
def test_a_job_that_is_being_printed_goes_back(number: int, code: int, cluster: MemoryCluster) -> None:
    cluster.execute(Put("mail", 0, bytes(1 << 20)))
    getting = start("--servers", cluster.addresses[0], "job", "get", "mail", "--expire", "0")
    with getting:
        assert getting.stdout
        assert getting.stdout.read(1) == "\0"       # more than a pipe holds is still to come
        getting.send_signal(number)
        getting.wait(PATIENCE_S)
    assert (getting.returncode, len(cluster.bodies("mail"))) == (code, 1)


@pytest.mark.parametrize(("number", "code"), NUMBERS)
def test_a_job_that_may_be_on_its_way_is_spoken_of(number: int, code: int, cluster: MemoryCluster) -> None:
    with start("--servers", cluster.addresses[0], "job", "get", "none", "--wait", "60") as getting:
        until(lambda: any(line.startswith("GETB") for line in cluster.servers[0].received))
        getting.send_signal(number)
        _, errors = getting.communicate(timeout=PATIENCE_S)
    assert getting.returncode == code
    assert errors.rstrip() == "interrupted; if a job was on its way it is running until its lease of 60 s ends"


def test_the_terminal_gets_its_cursor_back(cluster: MemoryCluster) -> None:
    terminal = Terminal(cluster.addresses, "cluster", "status", "--watch")
    terminal.wait_for("serving: n1 leads")
    terminal.signal(signal.SIGTERM)
    assert terminal.end() == 143
    assert terminal.text.rindex("\x1b[?25h") > terminal.text.rindex("\x1b[?25l")


def test_interrupted_while_it_starts_it_says_nothing() -> None:
    program = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "click":
            print("loading", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from sockpqd.pqctl.main import main
main()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=interruptible) as starting:
        assert starting.stdout
        starting.stdout.readline()
        starting.send_signal(signal.SIGINT)
        _, errors = starting.communicate(timeout=PATIENCE_S)
    assert (starting.returncode, errors) == (-signal.SIGINT, b"")


def test_a_signal_that_is_ignored_stays_so(cluster: MemoryCluster) -> None:
    program = "import signal, os; signal.signal(signal.SIGHUP, signal.SIG_IGN); from sockpqd.pqctl.main import main\n" \
              "from sockpqd.pqctl import connect; find = connect.find\n" \
              "connect.find = lambda *a: (os.kill(os.getpid(), signal.SIGHUP), find(*a))[1]; main()"
    ended = subprocess.run([sys.executable, "-c", program, "--servers", cluster.addresses[0], "cluster", "leader"],
                           check=False, timeout=PATIENCE_S)
    assert ended.returncode == 0
