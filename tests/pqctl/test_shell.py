"""`pqctl shell`: what is typed, what is sent, and what happens when the leader goes."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.text import readable
from sockpqd.pqctl.settings import Options
from sockpqd.pqctl.shell import completion
from sockpqd.pqctl.shell.completion import Words
from sockpqd.pqctl.shell.input import Mistyped, Typed, understand
from sockpqd.pqctl.shell.keyboard import history_file
from sockpqd.pqctl.shell.run import Screen
from tests.pqctl.running import PATIENCE_S, Terminal, execute


def read(name: str) -> bytes:
    assert name == "letter.txt"
    return b"dear"


@pytest.mark.parametrize(("text", "typed"), [
    ('PUT mail 0 "hello"', Typed("PUT mail 0 5", b"hello")),
    ('  PUT mail 0 "a\\nb" KEY k  ', Typed("PUT mail 0 3 KEY k", b"a\nb")),
    ('PUT mail 0 "ü \\"x\\""', Typed("PUT mail 0 6", 'ü "x"'.encode())),
    ('PUT mail 0 ""', Typed("PUT mail 0 0", b"")),
    ("PUT mail 0 <letter.txt KEY k", Typed("PUT mail 0 4 KEY k", b"dear")),
    ("REQ 7 PUT mail 0 5", Typed("REQ 7 PUT mail 0 5", missing_bytes=5)),
    ("PUT mail 0 0", Typed("PUT mail 0 0")),
    ("PUT mail 0 x", Typed("PUT mail 0 x")),
    ("PUT mail", Typed("PUT mail")),
    ("PUTS 3", Typed("PUTS 3", parts=3)),
    ("CHANGE 1 PRI 5", Typed("CHANGE 1 PRI 5")),
    ("CHANGE 1 PRI 5 DATA 12", Typed("CHANGE 1 PRI 5 DATA 12", missing_bytes=12)),
    ("MOVE 1 q DATA 2", Typed("MOVE 1 q DATA 2", missing_bytes=2)),
    ("CLONE <letter.txt", Typed("CLONE 4", b"dear")),
    ("NOTIFY channel 3", Typed("NOTIFY channel 3", missing_bytes=3)),
    ("PULSE SET p 3", Typed("PULSE SET p 3", missing_bytes=3)),
    ("GET mail EXPIRE 60", Typed("GET mail EXPIRE 60")),
    ("REQ", Typed("REQ")),
    ("put mail 0 5", Typed("put mail 0 5", missing_bytes=5)),
    ("req 7 Put mail 0 5", Typed("req 7 Put mail 0 5", missing_bytes=5)),
    ("puts 3", Typed("puts 3", parts=3)),
    ("exit", Typed("QUIT")),
    ("?", Typed("HELP")), ("?put", Typed("HELP put")), (" ? queue list", Typed("HELP  queue list")),
    ("", Typed("")),
])
def test_what_is_typed_becomes_what_is_sent(text: str, typed: Typed) -> None:
    assert understand(text, read) == typed


def test_a_part_of_puts_has_no_verb() -> None:
    assert understand("mail 0 5", read, part=True) == Typed("mail 0 5", missing_bytes=5)
    assert understand("req 0 5", read, part=True) == Typed("req 0 5", missing_bytes=5)


def test_a_string_that_is_none_is_told() -> None:
    with pytest.raises(Mistyped, match="not a JSON string"):
        understand('PUT mail 0 "\\x"', read)


def test_what_can_follow_is_completed_and_all_of_it_exists() -> None:
    assert set(completion.VERBS) - {"REQ"} <= {row.word.decode() for row in VERBS.rows}
    known = Words(lambda: ["mail", "mail_dead"])
    assert known.after("GE") == ["GET", "GETB", "GETBE"]
    assert known.after("cl") == ["CLONE", "CLUSTER"]
    assert known.after("CLUSTER ST") == ["STATUS"]
    assert known.after("REQ 5 PU") == ["PUT", "PUTS"]
    assert known.after("GET mail EX") == ["EXPIRE"]
    assert known.after("GET mail EXPIRE 60 EX") == []
    assert known.after("GET mail_") == ["mail_dead"]
    assert known.after("QUEUE PAUSE mai") == ["mail", "mail_dead"]
    assert known.after("PING mai") == []
    assert known.after("BOGUS ") == []


def test_names_that_cannot_be_had_are_not_offered() -> None:
    def fail() -> list[str]:
        raise OSError

    assert Words(fail).after("GET mai") == []


def test_nothing_in_an_answer_moves_the_cursor() -> None:
    assert readable(b"a\x1b[2Jb\x07\r\nc\td\xff\r") == "a\\x1b[2Jb\\x07\nc\td\\xff\\r"


def test_a_body_is_written_with_its_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written without one is covered by the next prompt."""
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    written: list[str] = []
    monkeypatch.setattr("sys.stdout", Tty())
    screen = Screen(Call(Options(), as_json=False, timeout=1))
    with screen.whole_lines():
        screen.show(b"200 OK mail 1 0 5\r\nhel")
        screen.show(b"lo")
    screen.end_answer("GET mail")
    screen.show(b"event\r\n")
    assert written == ["200 OK mail 1 0 5\n", "hello\n", "event\n"]


def test_the_history_is_in_the_folder_for_state() -> None:
    assert history_file({"XDG_STATE_HOME": "/state"}.get) == Path("/state/sockpq/shell_history")
    assert history_file({"XDG_STATE_HOME": "relative"}.get) == Path("~/.local/state/sockpq/shell_history").expanduser()


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        yield running


@pytest.fixture
def typist(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")        # nobody here answers where the cursor is
    return Terminal(cluster.servers, "shell")


SCRIPT = b"""PUT mail 0 "hello"
PUT mail 0 5
worldGET mail COUNT 2

PUTS 2
a 0 "x"
b 0 1
y
TOTAL
BOGUS
"""
ANSWERS = (b"200 OK\r\n200 OK\r\n200 OK 2\r\nmail 1 0 5\r\nmail 2 0 5\r\nhelloworld"
           b"200 OK 2\r\n200 OK\r\n200 OK\r\n200 OK 3 2 2 2\r\n400 Bad Command\r\n")


def test_commands_come_from_a_pipe_and_go_to_the_leader(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    follower = next(cluster.server(name) for name in cluster.names if name != leader)
    ended = execute([follower], "shell", data=SCRIPT)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.replace(b"helloworld\n", b"helloworld") == ANSWERS
    told = execute(cluster.servers, "shell", "--json", data=b"TOTAL\nQUIT\nTOTAL\n")
    assert [json.loads(line) for line in told.stdout.splitlines()] == [
        {"command": "TOTAL", "answer": "200 OK 3 2 2 2\r\n"}, {"command": "QUIT", "answer": "221 Goodbye\r\n"}]


def test_bytes_that_are_no_text_go_to_the_server_as_they_are(cluster: LocalCluster) -> None:
    script = (
        b"\xff\xfe\nPUTS 1\nmail\xff 0 1\naPUT mail 0 \"\xff\"\nPUT mail 0 <\0\nPUT mail 0 <~nobody_here/x\n"
        b"PUT mail 0 2\n\xff\xfeTOTAL mail\n")
    ended = execute(cluster.servers, "shell", data=script)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (
        b"400 Bad Command\r\n200 OK 1\r\n"
        b"400 Bad Arguments: expected a name of A-Z a-z 0-9 _ . + / ; $ ( ) : @ -, not 'mail\\xff'\r\n"
        b"200 OK\r\n200 OK 1 1 1 0\r\n")
    assert len(ended.stderr.splitlines()) == 3      # of the string and of the files: nothing was sent


def test_no_server_is_a_clear_end() -> None:
    ended = execute(["127.0.0.1:1"], "shell", data=b"TOTAL\n")
    assert ended.returncode == 2
    assert b"nobody listens" in ended.stderr


def test_a_typist_sees_answers_keeps_his_history_and_goes_on_without_the_leader(
    cluster: LocalCluster, typist: Terminal, tmp_path: Path
) -> None:
    leader = cluster.wait_for_leader()
    typist.wait_for(f"{cluster.server(leader)}>")
    typist.type('PUT mail 5 "hello"\r')
    typist.wait_for("200 OK")
    typist.type("PUT mail 0 11\r")
    typist.wait_for("11 bytes>")
    typist.type("hello\r")
    typist.wait_for("5 more>")
    typist.type("world\r")
    typist.type("TOTAL\r")
    typist.wait_for("200 OK 1 2 2 0")
    typist.type("PUT mail 0 3\r")
    typist.wait_for("3 bytes>")
    typist.type("four\r")
    typist.wait_for("4 bytes came, not 3: nothing was sent")
    cluster.kill(leader)
    successor = cluster.wait_for_leader(PATIENCE_S)
    typist.type("GET mail\r")
    typist.wait_for("200 OK mail 1 5 5")
    typist.wait_for(f"{cluster.server(successor)}>")
    typist.type("AUTH eva secret\r")
    typist.wait_for("403 Forbidden")
    typist.type("GETB nothing\r")
    typist.wait_for("GETB nothing")
    time.sleep(1.0)                 # until it waits
    typist.signal(signal.SIGINT)    # Ctrl-C
    typist.wait_for("gave up waiting")
    typist.type("DONE 77\r")
    typist.wait_for("404 Job Not Found")
    typist.type("quit\r")           # as QUIT, which ends the shell too
    assert typist.end() == 0
    assert "221 Goodbye" in typist.text
    history = (tmp_path / "sockpq" / "shell_history")
    assert "+DONE 77" in history.read_text()
    assert "secret" not in history.read_text()
    assert os.stat(history).st_mode & 0o077 == 0


def test_a_session_goes_along_to_the_next_leader(cluster: LocalCluster, typist: Terminal) -> None:
    leader = cluster.wait_for_leader()
    typist.wait_for(">")
    typist.type("SESSION\r")
    typist.wait_for("200 OK SESSION")
    typist.type('REQ 1 PUT mail 0 "hello" NEW\r')
    typist.wait_for("200 OK IS i1")
    cluster.kill(leader)
    cluster.wait_for_leader(PATIENCE_S)
    typist.type('REQ 1 PUT mail 0 "hello" NEW\r')
    typist.wait_for("has closed the connection" if "200 OK IS i1\n" in typist.text else "200 OK IS i1")
    typist.type("TOTAL mail\r")
    typist.wait_for("200 OK 1 1 1 0")
    typist.type("QUIT\r")
    assert typist.end() == 0
