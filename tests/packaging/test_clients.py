"""examples/clients: each puts and works through the death of a leader, and nothing is lost or done twice."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster

FOLDER = Path(__file__).parents[2] / "examples" / "clients"
LINES_MAX = 130
JOBS = 60
PATIENCE_S = 60.0
BODIES = [f"letter {number} \u00fc" if number % 2 else f"x{number}" * number for number in range(JOBS)]

# What each is run by; {file} is the file, {folder} a folder to compile into.
RUNS = {
    "client.sh": ("bash", "{file}"),
    "client.pl": ("perl", "{file}"),
    "client.php": ("php", "{file}"),
    "client.rb": ("ruby", "{file}"),
    "client.go": ("{folder}/client",),
    "client.mjs": ("node", "{file}"),
    "Client.java": ("java", "{file}"),
    "client.c": ("{folder}/client",),
}
COMPILERS = {
    "client.go": ("go", "build", "-o", "{folder}/client", "{file}"),
    "client.c": ("cc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "{folder}/client", "{file}"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        yield running


def command(name: str, folder: Path) -> list[str]:
    """The program, compiled if it has to be; skips when it cannot be run here."""
    needed = (COMPILERS.get(name) or RUNS[name])[0]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    words = {"file": str(FOLDER / name), "folder": str(folder)}
    if name in COMPILERS:
        subprocess.run([word.format(**words) for word in COMPILERS[name]], check=True, timeout=200, cwd=folder)
    return [word.format(**words) for word in RUNS[name]]


def wait_until_done(worker: subprocess.Popen[bytes], count: int, output: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while output.read_bytes().count(b"\n") < count:
        assert worker.poll() is None
        assert time.monotonic() < until, output.read_bytes()
        time.sleep(0.02)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_lost_or_done_twice_when_the_leader_is_killed(
    name: str, cluster: LocalCluster, tmp_path: Path
) -> None:
    program = command(name, tmp_path)
    queue = name.replace(".", "_")
    servers = ",".join(cluster.servers)
    output = tmp_path / "output"
    with output.open("wb") as out:
        worker = subprocess.Popen([*program, servers, "work", queue, str(JOBS)], stdout=out)
    putter = subprocess.Popen([*program, servers, "put", queue], stdin=subprocess.PIPE)
    assert putter.stdin is not None
    try:
        for number, body in enumerate(BODIES):
            putter.stdin.write(f"{body}\n".encode())
            putter.stdin.flush()
            if number == JOBS // 3:
                wait_until_done(worker, 1, output)
                leader = cluster.wait_for_leader()
                cluster.kill(leader)
        putter.stdin.close()
        assert putter.wait(PATIENCE_S) == 0
        assert worker.wait(PATIENCE_S) == 0
    finally:
        for process in (worker, putter):
            process.kill()
            process.wait()
        cluster.restart(leader)
        cluster.wait_until_level()
    assert sorted(output.read_text().splitlines()) == sorted(BODIES)
    with Client(cluster.servers) as client:
        assert client.total(queue).jobs == client.total(queue).running == 0


def test_there_is_one_for_each_language_and_each_is_short() -> None:
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    assert files == set(RUNS)
    for name in files:
        assert len((FOLDER / name).read_text().splitlines()) <= LINES_MAX, name
    text = (FOLDER / "README.md").read_text()
    assert all(f"[{name}]({name})" in text for name in files)


def test_each_says_how_it_is_used_and_when_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))           # and does not listen
        server = f"127.0.0.1:{nobody.getsockname()[1]}"
        running = []
        for name, words in RUNS.items():        # all at once, as each gives up after ten seconds
            if shutil.which((COMPILERS.get(name) or words)[0]) is None:
                continue
            folder = tmp_path / name
            folder.mkdir()
            for arguments, code, said in (([], 64, "usage: "), ([server, "steal", "q", "1"], 64, "usage: "),
                                          ([server, "work", "q"], 64, "usage: "),
                                          ([server, "work", "q", "two"], 64, "usage: "),
                                          ([server, "work", "q", "1"], 1, f"no server answers at {server}")):
                running.append((name, code, said, subprocess.Popen(
                    [*command(name, folder), *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                )))
        for name, code, said, process in running:
            with process:
                _, told = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == code, (name, told)
            assert told.startswith(said), (name, told)
            assert told.count("\n") == 1, (name, told)
