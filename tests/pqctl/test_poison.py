"""The output of a server has no effect on a terminal, whichever command prints it, and in whatever way it lies."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import click
import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.program import pqctl
from tests.pqctl import poison, running
from tests.pqctl.poison import LOUD, Poison
from tests.pqctl.running import Terminal, run

ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")          # what pqctl's own pictures need on a terminal

# Each command with what makes it say the most. {file} is a backup, {folder} one for more.
COMMANDS = """
cluster status | cluster leader | cluster hash | cluster add evil 127.0.0.1:1 127.0.0.1:2 | cluster remove evil
cluster transfer | cluster transfer evil | cluster offline | cluster online | cluster snapshot | cluster snapshot evil
node offline evil | node online evil | node shutdown evil --yes | node snapshot evil
queue list | queue list evil | queue stat | queue stat evil_q | queue stat evil_none | queue create evil_q
queue config evil_q
queue delete evil_q --yes | queue purge evil_none ready --yes | queue pause evil_q out --for 1 | queue resume evil_q
queue peek evil_q | queue peek evil_q --body | queue drain evil_none | queue move evil_none evil_q
queue move evil_none evil_q --died evil_q | queue purge evil_none own --yes
queue delete evil_none --force --leave --yes
queue peek evil_q --state running | queue peek evil_q --state dead
topic list | topic bind evil_t evil_q | topic unbind evil_none evil_q
topic publish evil_t x | topic publish evil_none x
topic delete evil_none
job put evil_q x | job put evil_q x --key evil_key | job get evil_none | job done 999999 | job later 999999
job running | job running --data | job show evil_q/evil_key | job show number:1 | job peek evil_q/evil_key
job change evil_q/evil_none --priority 1 | job delete evil_q/evil_none | job touch 999999 | job bury 999999
job kick evil_q 1 | job stat number:1
job find evil_q | job retry number:1 | job cancel evil_q/evil_none | job await evil_q/evil_none
item list | item list evil | item show evil_item | item show evil_none | item retry evil_item | item retry evil_none
item cancel evil_none --yes | item hold evil_item | item hold | item release evil_item | item release evil_none
group list | group show evil_group | group show evil_none | group config evil_group --limit 3 | group pause evil_group
group resume evil_group | group resume evil_none | group delete evil_group | group delete evil_none
sched show | sched group evil_group | sched group evil_none | sched config
pulse list | pulse stat evil_p | pulse create evil_p --rate 1 | pulse config evil_none --rate 1 | pulse delete evil_none
pulse set evil_p evil | pulse watch evil_p --lines 1
backup {folder} | verify {file} | restore {file} --dry-run | restore {file}
session list | session close 999999 | worker list
worker set evil_w --max 3 | worker pause evil_w | worker resume evil_w
worker stop evil_none
map show | map check | map add evil 127.0.0.1:1 | map assign evil evil | map spread evil_q | map move evil evil
map remove evil | map init evil
user list | user set evil_u --rights put:evil* --secret-file {secret} | user delete evil_none
cron list | cron list --queue evil_q | cron delete evil_task | config | bench --seconds 0.1 --connections 1
doctor | doctor --data-dir {folder} | events --after 0 --wait 0.2 | top --count 1
import beanstalkd 127.0.0.1:1 | region status {server} | region diff {server} | region promote --yes
region follow {server} | region stop --yes | region drill --timeout 1
"""
LINES = [line.strip() for part in COMMANDS.splitlines() for line in part.split(" | ") if line.strip()]
WAYS = [poison.names, poison.refusals, poison.rubbish]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, dict[str, str]]]:
    """A node that has some of everything, all of it with names that become escape sequences; and files."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "secret").write_text("secret-of-evil-ones")
    with LocalCluster(1) as cluster, Client(cluster.servers) as client, client.consumer():
        client.put_many("evil_q", [b"body of evil"] * 3, keys=["evil_key", "evil_2", "evil_3"])
        client.put("evil_q", b"evil", number=True, group="evil_group", item="evil_item")
        job = client.get("evil_q", expire=3600)
        assert job
        client.topic_bind("evil_t", "evil_q")
        client.pulse_create("evil_p", rate=1)
        client.set_user("evil_u", "put:evil*", "secret-of-evil-ones")
        client.worker_beat("evil_w", 2, 1)
        file = folder / "evil.snapshot"
        with file.open("w+b") as taken:
            client.snapshot_into(taken)
        yield cluster, {"folder": str(folder), "file": str(file), "secret": str(folder / "secret"),
                       "server": cluster.servers[0]}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("line", LINES)
def test_no_command_prints_what_acts_on_a_terminal(
    line: str, way: poison.Said, place: tuple[LocalCluster, dict[str, str]], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, files = place
    arguments = line.format(**files).split()
    patience = "0.6" if way is poison.names else "0.1"
    own = ["--timeout", patience] if arguments[0] != "verify" else []
    with closing(Poison(cluster.servers[0], way)) as liar:
        for options in ([], ["--json"]) if way is poison.names else ([],):
            code, out, errors = run(capsys, "--servers", liar.address, *arguments, *own, *options)
            assert not ACTING.search(out + errors), (code, out, errors)
            if options and arguments[0] not in ("events", "top", "pulse"):
                json.loads(out)


def test_every_command_is_among_them() -> None:
    def walk(command: click.Command, path: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner
                yield from walk(inner, f"{path} {name}".strip())
        else:
            yield path

    there = {path for path in walk(pqctl, "") if any(f"{line} ".startswith(f"{path} ") for line in LINES)}
    assert set(walk(pqctl, "")) - there == {"shell"}        # which is tested on a terminal


@pytest.mark.parametrize("line", ["cluster status", "doctor", "worker list"])
def test_likewise_on_a_terminal(line: str, place: tuple[LocalCluster, dict[str, str]]) -> None:
    with closing(Poison(place[0].servers[0], poison.names)) as liar:
        terminal = Terminal([liar.address], *line.split())
        terminal.end()
    assert not ACTING.search(OWN.sub("", terminal.text)), terminal.text
    assert "\\x1b" in terminal.text


@pytest.mark.parametrize("line", ["job peek loud/key", "queue peek loud", "queue peek loud --raw", "job get loud"])
def test_the_body_of_a_job_on_a_terminal(line: str, place: tuple[LocalCluster, dict[str, str]]) -> None:
    with Client(place[0].servers) as client:
        client.put("loud", b"\x1b[2J" + LOUD, key="key", on_duplicate="replace")
    terminal = Terminal(place[0].servers, *line.split())
    assert terminal.end() == 0
    assert not ACTING.search(OWN.sub("", terminal.text.replace("\x1b[2J", "\x07"))), terminal.text
    assert "\\x1b[2J" in terminal.text


def test_the_shell_on_a_terminal(
    place: tuple[LocalCluster, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    with closing(Poison(place[0].servers[0], poison.names)) as liar:
        terminal = Terminal([liar.address], "shell")
        for line, answer in (
            ("QUEUE LIST", "\\x1b[1m_q"), ("PEEK evil_q READY", "\\x1b[1m"), ("WORKER LIST", "\\x1b[1m_w"),
            ("PING", "200 OK"),
        ):
            terminal.wait_for(f"{liar.address}>")
            terminal.type(f"{line}\r")
            terminal.wait_for(answer)
            terminal.text = terminal.text.partition(answer)[2]
        terminal.type("QUIT\r")
        terminal.wait_for("221")
        assert terminal.end() == 0


@pytest.mark.parametrize("no_colour", [True, False])
def test_doctor_has_colours_on_a_terminal_unless_they_are_unwanted(
    no_colour: bool, place: tuple[LocalCluster, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_without_size", lambda: {**os.environ, **({"NO_COLOR": "1"} if no_colour else {})})
    terminal = Terminal(place[0].servers, "doctor")
    terminal.end()
    assert "\x1b[32mOK" in terminal.text or no_colour
    assert ("\x1b[3" in terminal.text) != no_colour


class Lies:
    """A beanstalkd that only lies."""

    def __init__(self, stats: bytes) -> None:
        self._stats = stats
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            with connection:
                while command := connection.recv(1000):
                    said = self._stats if command.startswith(b"stats") else b"---\n- ev" + LOUD + b"il\n"
                    connection.sendall(b"OK %d\r\n%b\r\n" % (len(said), said))


@pytest.mark.parametrize("stats", [
    b"---\nversion: 1" + LOUD + b"\nid: x\n", b"---\nversion: \x1b[2J1\nid: x\ncurrent-jobs-reserved: \x1b[2J\n", LOUD,
])
def test_a_beanstalkd_that_lies(
    stats: bytes, place: tuple[LocalCluster, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Lies(stats)) as source:
        _, out, errors = run(capsys, "--servers", place[0].servers[0], "import", "beanstalkd", source.address)
    assert not ACTING.search(out + errors), (out, errors)
    assert out + errors
