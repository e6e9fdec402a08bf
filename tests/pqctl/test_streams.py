"""Standard streams that are closed, full, or lack a character."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sockpqd.pqctl.output.text import sized
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.backup_file import snapshot
from tests.pqctl.running import PATIENCE_S, PROGRAM


def shell(cluster: MemoryCluster, redirection: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of pqctl with this redirection after it."""
    ended = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", str(PROGRAM), *arguments], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, "SOCKPQ_SERVERS": ",".join(cluster.addresses), **environment},
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.parametrize("arguments", [
    ("cluster", "status"), ("queue", "stat", "--json"), ("job", "put", "q", "x"), ("--help",), ("--version",),
    ("cluster", "status", "--watch"), ("cluster", "transfer", "n9", "--json"),
], ids=" ".join)
def test_an_output_that_takes_nothing(redirection: str, arguments: tuple[str, ...], cluster: MemoryCluster) -> None:
    code, out, err = shell(cluster, redirection, *arguments)
    assert (code, out) == (74, "")
    assert "cannot write the output: " in err
    assert err.count("\n") == 1


def test_a_job_is_not_taken_for_printed_when_there_is_no_output(cluster: MemoryCluster) -> None:
    shell(cluster, "", "job", "put", "mail", "body")
    code, _, err = shell(cluster, ">&-", "job", "get", "mail")
    assert (code, cluster.bodies("mail"), "Traceback" in err) == (74, [b"body"], False)


def test_without_a_standard_error_the_output_has_the_body_alone(cluster: MemoryCluster) -> None:
    shell(cluster, "", "job", "put", "mail", "body")
    assert shell(cluster, "2>&-", "job", "get", "mail") == (0, "body", "")


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
@pytest.mark.parametrize(("arguments", "expected"), [
    (("nonsense",), 64), (("job", "get", "empty"), 1), (("cluster", "remove", "n9"), 1),
    (("queue", "stat", "--servers", "127.0.0.1:1"), 2),
])
def test_the_exit_code_is_right_when_the_sentence_cannot_be_written(
    redirection: str, arguments: tuple[str, ...], expected: int, cluster: MemoryCluster
) -> None:
    assert shell(cluster, redirection, *arguments) == (expected, "", "")


@pytest.mark.parametrize("arguments", [
    ("job", "put", "q"), ("job", "put", "q", "--file", "-"), ("snapshot", "restore", __file__),
], ids=" ".join)
def test_an_input_that_is_closed_is_no_empty_body(arguments: tuple[str, ...], cluster: MemoryCluster) -> None:
    code, out, err = shell(cluster, "<&-", *arguments)
    assert (code, out, err.count("\n"), cluster.executed) == (64, "", 1, [])


def test_a_help_page_nobody_reads_ends_without_a_word(cluster: MemoryCluster) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([PROGRAM, "--help"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_question_nobody_sees_is_not_asked(cluster: MemoryCluster) -> None:
    code, _, err = shell(cluster, "< /dev/null", "node", "shutdown", "n1")
    assert (code, "give --yes" in err) == (64, True)


@pytest.mark.parametrize("name", ["grüße", b"\xff".decode(errors="surrogateescape")])
def test_characters_the_output_does_not_have(name: str, cluster: MemoryCluster, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    state = snapshot()
    cluster.show_snapshot(state)
    code, out, err = shell(cluster, "", "backup", str(folder), PYTHONIOENCODING="ascii")
    assert (code, err, f"{sized(len(state))}, cluster 0123" in out) == (0, "", True)
    assert len(os.listdir(folder)) == 1
