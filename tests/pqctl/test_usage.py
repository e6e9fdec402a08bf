"""Help pages, bad input, and what is the same for all commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest
from sockpq import ServerView, Unavailable

from sockpqd.pqctl import connect, settings
from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.program import pqctl
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import PROGRAM, run

NAMES = {
    "cluster": ["add", "hash", "leader", "offline", "online", "remove", "snapshot", "status", "transfer"],
    "node": ["offline", "online", "shutdown", "snapshot"],
    "map": ["add", "assign", "check", "init", "move", "remove", "show", "spread"],
    "region": ["diff", "drill", "follow", "promote", "status", "stop"],
    "queue": ["config", "create", "delete", "drain", "list", "move", "pause", "peek", "purge", "resume", "stat"],
    "pulse": ["config", "create", "delete", "list", "set", "stat", "watch"],
    "item": ["cancel", "hold", "list", "release", "retry", "show"],
    "group": ["config", "delete", "list", "pause", "resume", "show"],
    "sched": ["show", "group", "config"],
    "job": [
        "await", "bury", "cancel", "change", "delete", "done", "find", "get", "kick", "later", "peek", "put", "retry",
        "running", "show", "stat", "touch",
    ],
    "session": ["close", "list"],
    "topic": ["bind", "delete", "list", "publish", "unbind"],
    "worker": ["list", "pause", "resume", "set", "stop"],
    "user": ["delete", "list", "set"],
    "cron": ["delete", "list"],
    "import": ["beanstalkd"],
    "config": None,
    "bench": None,
    "doctor": None,
}


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below `group`, and its place."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, (*path, name))
        else:
            yield (*path, name), found


LEAVES = dict(leaves(pqctl))
NEEDED = {                      # arguments with which each command is complete
    ("cluster", "add"): ["n4", "a:1", "a:2"],
    ("cluster", "remove"): ["n1"],
    ("node", "offline"): ["n1"], ("node", "online"): ["n1"], ("node", "snapshot"): ["n1"],
    ("node", "shutdown"): ["n1", "--yes"],
    ("map", "init"): ["a"], ("map", "add"): ["b", "b:1"], ("map", "remove"): ["b", "--yes"],
    ("map", "assign"): ["p.", "b"], ("map", "move"): ["p.", "b"], ("map", "spread"): ["q"],
    ("region", "diff"): ["b:1"], ("region", "promote"): ["--yes"], ("region", "stop"): ["--yes"],
    ("queue", "create"): ["q"], ("queue", "config"): ["q"], ("queue", "delete"): ["q", "--yes"],
    ("queue", "purge"): ["q", "all", "--yes"], ("queue", "pause"): ["q"], ("queue", "resume"): ["q"],
    ("queue", "peek"): ["q"], ("queue", "drain"): ["q"], ("queue", "move"): ["q", "other"],
    ("job", "bury"): ["1"], ("job", "change"): ["1", "--no-item"],
    ("job", "delete"): ["1"], ("job", "kick"): ["q", "1"],
    ("job", "stat"): ["number:1"], ("job", "peek"): ["1"], ("job", "show"): ["q@5"], ("job", "touch"): ["1"],
    ("job", "await"): ["number:1"], ("job", "cancel"): ["1"], ("job", "retry"): ["number:1"],
    ("job", "put"): ["q", "body"], ("job", "done"): ["1"], ("job", "later"): ["1"],
    ("pulse", "create"): ["p"], ("pulse", "config"): ["p", "--rate", "1"], ("pulse", "delete"): ["p"],
    ("pulse", "set"): ["p", "x"], ("pulse", "stat"): ["p"], ("pulse", "watch"): ["p"],
    ("item", "cancel"): ["i", "--yes"],
    **{("item", verb): ["i"] for verb in ("hold", "release", "retry", "show")},
    **{("group", verb): ["g"] for verb in ("config", "delete", "pause", "resume", "show")},
    ("import", "beanstalkd"): ["127.0.0.1:2"],
    ("backup",): [str(Path(__file__).parent)], ("restore",): [__file__, "--yes"], ("verify",): [__file__],
    ("session", "close"): ["1"], **{("worker", verb): ["pool"] for verb in ("pause", "resume", "stop")},
    ("topic", "bind"): ["t", "q"], ("topic", "unbind"): ["t", "q"], ("topic", "delete"): ["t"],
    ("topic", "publish"): ["t", "body"],
    ("worker", "set"): ["pool", "--max", "1"], ("cron", "delete"): ["task"], ("sched", "group"): ["g"],
    ("user", "set"): ["ann", "--rights", "put"], ("user", "delete"): ["ann"],
}


def test_the_commands() -> None:
    expected = [(group, name) for group, names in NAMES.items() for name in names or []]
    single = [("backup",), ("verify",), ("restore",), ("bench",), ("config",), ("doctor",), ("shell",), ("events",),
              ("top",)]
    assert sorted(LEAVES) == sorted([*expected, *single])


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_each_help_page_tells_json_and_the_exit_codes_and_fits_80_columns(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *path, "--help")
    assert code == 0
    assert "--json" in out
    codes = [line.split()[0] for line in out.partition("Exit codes:")[2].splitlines() if line.strip()]
    assert codes[:3] == (["0", "64", "74"] if path == ("verify",) else ["0", "1", "2"])        # verify asks nobody
    assert "64" in codes
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_without_servers_each_command_asks_the_one_on_this_machine(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == ("verify",):
        return                  # asks nobody
    monkeypatch.setattr(settings, "DEFAULT_SERVER", "127.0.0.1:1")
    code, out, err = run(capsys, *path, *NEEDED.get(path, []), "--timeout", "0.3")
    assert code in (1, 2)       # doctor has a judgement of its own
    assert "127.0.0.1:1" in out + err
    assert "nobody listens there" in " ".join((out + err).split())
    assert "Errno" not in out + err


def test_without_arguments_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: pqctl")


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_each_command_takes_servers_before_and_after_its_name(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if path == ("verify",):
        return                  # asks nobody
    for arguments in (["--servers", "a:b", *path], [*path, "--servers", "a:b"]):
        code, out, err = run(capsys, *arguments, *NEEDED.get(path, []))
        assert (code, out) == (64, "")
        assert "--servers: not a port: 'b'" in err


ADD = ("cluster", "add")
BAD = [
    ("--servers",), ("nonsense",), ("cluster", "stattus"), ("--jsno",),
    ("cluster", "status", "--timeout", "0"), ("cluster", "status", "--timeout", "x"),
    ("cluster", "leader", "--timeout", "nan"), ("cluster", "status", "--jsno"),
    ("cluster", "status", "x"), ("cluster", "status", "--watch", "--interval", "0"), ("cluster", "status", "--json=1"),
    ("cluster", "leader", "n1"), ("cluster", "hash", "n1"),
    ADD, (*ADD, "n4"), (*ADD, "n4", "a:1"), (*ADD, "n4", "a", "a:1"), (*ADD, "n4", "a:1", "a:0"),
    (*ADD, "n 4", "a:1", "a:2"), (*ADD, "n4", "a:1", "a:2", "x"), (*ADD, "\udcff", "a:1", "a:2"),
    ("cluster", "remove"), ("cluster", "remove", "n1", "n2"), ("cluster", "remove", "n1\r\nQUIT"),
    ("cluster", "remove", "n1", "--force"), ("cluster", "transfer", "a", "b"), ("cluster", "transfer", "*"),
    ("cluster", "offline", "n1"), ("cluster", "online", "n1"), ("cluster", "snapshot", "a", "b"),
    ("node", "offline"), ("node", "online"), ("node", "shutdown"), ("node", "shutdown", "n1"),
    ("node", "snapshot"), ("node", "snapshot", "a", "b"),
    ("queue", "stat", "a", "b"), ("queue", "stat", "no such"), ("queue", "stat", ""), ("queue", "list", "a b"),
    ("queue", "stat", "a\nb\x1b[31m"),
    ("job", "put"), ("job", "put", "q", "a", "b"), ("job", "put", "q", "a", "--file", "x"),
    ("job", "put", "q", "--file", "/nonexistent"), ("job", "put", "q", "--file", "/"),
    ("job", "put", "q", "--file", ""),
    ("job", "put", "q", "--file", "a\0b"), ("job", "put", "no such", "x"),
    ("job", "put", "q", "x", "--priority", "high"),
    ("job", "put", "q", "x", "--priority", str(2**63)), ("job", "put", "q", "x", "--item", "no such"),
    ("job", "put", "q", "x", "--item", "i", "--new-item"), ("job", "put", "q", "-x"),
    ("job", "get", "no such"), ("job", "get", "q", "--expire", "-1"), ("job", "get", "q", "--expire", "nan"),
    ("job", "get", "q", "--expire", "1e99"), ("job", "get", "q", "--then", "never"), ("job", "get", "q", "--wait", "0"),
    ("job", "get", "q", "--wait", "inf"),
    ("job", "done"), ("job", "done", "x"), ("job", "done", "--", "-1"), ("job", "done", str(2**64)),
    ("job", "later"), ("job", "later", "1.5"), ("job", "later", str(2**64)), ("job", "running", "q"),
    ("queue", "create"), ("queue", "create", "q", "--order", "lifo"), ("queue", "create", "q", "--dead", "d"),
    ("queue", "create", "q", "--limit", "-1"), ("queue", "config", "no such"),
    ("queue", "config", "q", "--then", "done"),
    ("queue", "delete", "q", "--force"), ("queue", "purge", "q"), ("queue", "purge", "q", "all"),
    ("queue", "purge", "q", "taken", "--yes"), ("queue", "pause", "q", "both"), ("queue", "resume"),
    ("queue", "peek", "q", "--count", "0"), ("queue", "peek", "q", "--state", "all"),
    ("job", "put", "q", "x", "--delay", "1", "--at", "1"), ("job", "put", "q", "x", "--at", "soon"),
    ("job", "put", "q", "x", "--delay", "nan"), ("job", "put", "q", "x", "--key", "a b"),
    ("job", "put", "q", "x", "--on-duplicate", "ignore"), ("job", "put", "q", "x", "--tries", "0"),
    ("job", "put", "q", "x", "--every", "0"), ("job", "put", "q", "x", "--after", "a b"),
    ("job", "put", "q", "x", "--when", "end"), ("job", "put", "q", "x", "--after", "a", "--when", "never"),
    ("job", "later", "1", "--delay", "-1"), ("job", "peek", "x"), ("job", "peek", "q/a b"), ("job", "peek", "q/"),
    ("job", "show", "q@x"), ("job", "show", "@5"), ("job", "delete", "a b@5"),
    ("job", "change", "1"), ("job", "change", "1", "--item", "a", "--no-item"),
    ("job", "change", "/k", "--priority", "1"),
    ("job", "delete"), ("job", "delete", "\udcff"), ("job", "touch", "q/k"), ("job", "touch", "1", "--then", "done"),
    ("job", "bury"), ("job", "bury", "1", "--reason", "two words"), ("job", "kick", "q"), ("job", "kick", "q", "0"),
    ("item", "show"), ("item", "show", "a b"), ("item", "list", "a*"), ("item", "hold", "a b"),
    ("item", "hold", "a", "--expire", "0"),
    ("item", "hold", "a", "--then", "release"), ("item", "hold", "NEW"), ("item", "release"),
    ("item", "cancel", "i"), ("item", "cancel", "i", "--yes", "--reason", "a b"),
    ("item", "retry"), ("item", "retry", "a", "b"),
    ("map", "init", "a b"), ("map", "move", "a\nRULE b", "c"), ("map", "assign", "p.", ""), ("map", "spread"),
    ("map", "add", "b"), ("map", "move", "p.", "b", "--wait", "-1"),
    ("group", "show"), ("group", "list", "a b"), ("group", "config", "g", "--limit", "-1"),
    ("group", "config", "g", "--rate", "5"), ("group", "config", "g", "--per", "5"),
    ("group", "config", "g", "--rate", "5", "--per", "0.01"), ("group", "config", "g", "--rate", "10001", "--per", "1"),
    ("group", "pause", "g", "--for", "0"), ("group", "resume"), ("group", "delete", "a b"),
    ("queue", "create", "q", "--group-rate", "5"), ("group", "config", "g", "--weight", "0"),
    ("queue", "create", "q", "--group-by", "header:"), ("queue", "create", "q", "--group-by", "header:a b"),
    ("queue", "create", "q", "--group-by", "shop"), ("group", "config", "g", "--weight", "1001"),
    ("queue", "config", "q", "--group-limit", "-1"),
    ("config", "x"), ("config", "--autocreate", "maybe"), ("config", "--policy", "best"), ("config", "--grace", "-1"),
    ("backup",), ("backup", "/nonexistent"), ("backup", "a\0b"), ("backup", __file__), ("backup", "/", "--keep", "0"),
    ("verify",), ("verify", "/nonexistent"), ("verify", "/"), ("verify", "/dev/zero"), ("verify", "a\0b"),
    ("restore",), ("restore", "/nonexistent", "--yes"), ("restore", "/", "--yes"), ("restore", "/dev/zero", "--yes"),
    ("user", "list", "x"), ("user", "delete"), ("user", "delete", "a b"), ("user", "set", "ann"),
    ("user", "set", "--rights", "put"), ("user", "set", "ann", "--rights", "putt"),
    ("user", "set", "a b", "--rights", "-"), ("user", "set", "ann", "--rights", ""),
    ("user", "set", "ann", "--rights", "put:mail"),
    ("user", "set", "ann", "--rights", "put", "--secret-file", "/nonexistent"),
    ("user", "set", "ann", "--rights", "put", "--secret-file", "/dev/null"),
    ("user", "set", "ann", "--rights", "put", "--secret-file", __file__),
    ("--ca", "/nonexistent", "queue", "list"), ("--ca", __file__, "queue", "list"), ("--ca", "a\0b", "queue", "list"),
    ("--ca", "x", "--no-tls", "queue", "list"), ("--user", "ann", "queue", "list"), ("--user", "", "queue", "list"),
    ("--secret-file", __file__, "queue", "list"), ("--user", "ann", "--secret-file", __file__, "queue", "list"),
    ("--user", "ann", "--secret-file", "/nonexistent", "queue", "list"),
    ("bench", "x"), ("bench", "--seconds", "0"), ("bench", "--seconds", "nan"), ("bench", "--connections", "0"),
    ("bench", "--size", "-1"), ("bench", "--size", str(2**40)),
    ("doctor", "x"), ("doctor", "--data-dir", "/nonexistent"), ("doctor", "--data-dir", __file__),
    ("doctor", "--data-dir", "a\0b"), ("doctor", "--data-dir", ""),
]


@pytest.mark.parametrize("group", ["cluster", "node", "queue", "job", "user", "pulse", "item", "group"])
def test_a_group_alone_shows_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, group)
    assert (code, err) == (0, "")
    assert out == run(capsys, group, "--help")[1]


@pytest.mark.parametrize(("typed", "told"), [
    (("jobs",), "No such command 'jobs'. Did you mean 'job'?"), (("queues", "list"), "Did you mean 'queue'?"),
    (("workers",), "Did you mean 'worker'?"), (("nonsense",), "No such command 'nonsense'. (see"),
    (("help",), "No such command 'help'. (see"), (("job", "put", "q", "--every"), "(see `pqctl job put --help`)"),
    (("queue", "create", "q", "--tries", "x"), "'x' is not a whole number. (see"),
    (("job", "put", "q", "x", "--delay", "soon"), "'soon' is not a number. (see"),
    (("job", "kick", "q", "x"), "'x' is not a whole number. (see"),
], ids=str)
def test_a_slip_is_told_in_words_that_help(
    typed: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *typed)
    assert (code, out) == (64, "")
    assert told in err


@pytest.mark.parametrize(("typed", "suggested"), [
    ("--bogus", ""), ("--serves", " Did you mean '--servers'?"), ("--x", ""),
])
def test_only_options_that_are_near_are_suggested(
    typed: str, suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, typed)[2] == f"Error: No such option '{typed}'.{suggested} (see `pqctl --help`)\n"


@pytest.mark.parametrize("path", sorted({path[:-1] for path in LEAVES}), ids=" ".join)
def test_no_sentence_of_a_list_of_commands_is_cut(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    page = run(capsys, *path, "--help")[1]
    assert "Commands:" in page
    assert not [line for line in page.splitlines() if line.endswith("...") and "[ARGS]" not in line]


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: ascii(" ".join(arguments)))
def test_bad_input_is_one_line_and_exit_code_64(
    arguments: tuple[str, ...], cluster: MemoryCluster, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOCKPQ_SERVERS", cluster.addresses[0])
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (64, "")
    assert err.startswith("Error: ")
    assert err.endswith(" --help`)\n")
    assert err[:-1].isprintable()
    assert cluster.executed == []


@pytest.mark.parametrize("arguments", [
    ("cluster", "status", "--json", "--nonsense"), ("job", "done", "x", "--json"),
    ("cluster", "leader", "--json", "--servers", ""),
    ("backup", "/nonexistent", "--json"), ("job", "put", "q", "a", "--file", "b", "--json"),
], ids=" ".join)
def test_programs_are_told_what_is_wrong_as_well(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    told = json.loads(out)
    assert (code, list(told), told["error"]) == (64, ["error", "message"], "usage")
    assert err.startswith(f"Error: {told['message']} (see `pqctl ")


def test_what_begins_with_dashes_behind_two_of_them_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "job", "put", "q", "--", "x", "--json")[:2] == (64, "")


@pytest.mark.parametrize("option", [("--json",), ("--timeout", "3")])
def test_an_option_of_the_commands_is_shown_its_place(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = run(capsys, *option, "cluster", "status")
    assert err == f"Error: {option[0]} goes after the command (see `pqctl --help`)\n"


@pytest.mark.parametrize("option", [("--ca", "x"), ("--user", "x"), ("--no-tls",)])
def test_an_option_of_the_program_is_shown_its_place(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = run(capsys, "cluster", "status", *option)
    assert err == f"Error: {option[0]} goes before the command (see `pqctl cluster status --help`)\n"


@pytest.mark.parametrize("servers", ["a:b", "a:0", "a:70000", "[::1", "a b:1", "::1:1", ":1"])
def test_the_place_of_a_wrong_address_is_told(
    servers: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, "--servers", servers, "cluster", "status")
    assert (code, err.startswith("Error: --servers: ")) == (64, True)
    monkeypatch.setenv("SOCKPQ_SERVERS", servers)
    assert run(capsys, "cluster", "status")[2].startswith("Error: SOCKPQ_SERVERS: ")
    monkeypatch.delenv("SOCKPQ_SERVERS")
    settings.user_file().parent.mkdir(parents=True)
    settings.user_file().write_text(f'servers = ["{servers}"]')
    assert run(capsys, "cluster", "status")[2].startswith(f"Error: {settings.user_file()}: ")


def test_the_servers_can_come_from_a_file(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    settings.user_file().parent.mkdir(parents=True)
    settings.user_file().write_text(f'servers = ["{cluster.addresses[1]}"]')
    assert run(capsys, "cluster", "leader")[:2] == (0, f"n1  {cluster.addresses[0]}\n")


def test_servers_that_are_all_slow_have_the_whole_timeout(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "ASK_S", 0.05)
    ask, waits = connect.ask, list[float]()

    def slow(servers: Iterable[str], timeout: float, access: ClusterAccess) -> tuple[list[ServerView], int]:
        waits.append(timeout)
        views, count = ask(servers, 60, access)
        if timeout > 1:
            return views, count
        time.sleep(timeout)
        return [view._replace(error=Unavailable("no answer in time")) for view in views], count

    monkeypatch.setattr(connect, "ask", slow)
    arguments = ("--servers", cluster.addresses[1], "cluster", "leader", "--timeout", "60")
    assert run(capsys, *arguments)[:2] == (0, f"n1  {cluster.addresses[0]}\n")
    assert waits[0] == 0.05
    assert len(waits) == 2


def test_a_defect_is_not_taken_for_a_refusal(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpqd.pqctl.connect.find", lambda *_: 1 / 0)
    code, out, err = run(capsys, "--servers", cluster.addresses[0], "cluster", "leader")
    assert (code, out) == (70, "")
    assert "ZeroDivisionError" in err


def test_output_that_nobody_reads_ends_it_without_a_word(cluster: MemoryCluster) -> None:
    environment = {**os.environ, "SOCKPQ_SERVERS": cluster.addresses[0]}
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([PROGRAM, "cluster", "status", "--json"], stdout=write, stderr=subprocess.PIPE,
                           env=environment)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_output_that_cannot_be_written_is_told(cluster: MemoryCluster) -> None:
    environment = {**os.environ, "SOCKPQ_SERVERS": cluster.addresses[0]}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([PROGRAM, "cluster", "status"], stdout=full, stderr=subprocess.PIPE, env=environment)
    assert (ended.returncode, ended.stderr) == (74, b"cannot write the output: No space left on device\n")


@pytest.mark.parametrize(("words", "expected"), [
    ("pqctl ", {"cluster", "node", "map", "region", "queue", "topic", "job", "item", "group", "sched", "pulse",
                "backup", "verify", "restore", "session", "worker", "user", "cron", "import", "config", "bench",
                "doctor", "shell", "events", "top"}),
    ("pqctl cluster ", set(NAMES["cluster"] or [])),
    ("pqctl job get --th", {"--then"}),
    ("pqctl job get --then ", {"later", "done", "dead"}),
    ("pqctl --ca x", {"file,x"}), ("pqctl --secret-file x", {"file,x"}),
    ("pqctl user set ann --secret-file x", {"file,x"}),
    ("pqctl restore x", {"file,x"}), ("pqctl verify x", {"file,x"}), ("pqctl backup x", {"dir,x"}),
    ("pqctl job put q --file x", {"file,x"}), ("pqctl doctor --data-dir x", {"dir,x"}),
])
def test_shell_completion(words: str, expected: set[str]) -> None:
    environment = {**os.environ, "_PQCTL_COMPLETE": "bash_complete", "COMP_WORDS": words,
                   "COMP_CWORD": str(len(words.split(" ")) - 1)}
    told = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True).stdout
    assert {line.removeprefix("plain,") for line in told.split()} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(shell: str) -> None:
    environment = {**os.environ, "_PQCTL_COMPLETE": f"{shell}_source"}
    ended = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert "_PQCTL_COMPLETE" in ended.stdout


@pytest.mark.parametrize(("arguments", "spared"), [
    (("--help",), {"sockpq", "rich", "tomllib", "asyncio", "ssl"}),
    (("job", "put", "--help"), {"sockpq", "rich", "tomllib", "asyncio", "ssl"}),
    (("cluster", "status", "--json"), {"rich", "tomllib", "asyncio", "ssl"}),
    (("job", "put", "q", "body"), {"rich", "tomllib", "asyncio", "ssl"}),
    (("cluster", "status"), {"rich.live", "tomllib", "asyncio", "ssl"}),
], ids=lambda words: " ".join(sorted(words) if isinstance(words, set) else words))
def test_nobody_waits_for_modules_that_are_not_needed(
    arguments: tuple[str, ...], spared: set[str], cluster: MemoryCluster
) -> None:
    program = "import sys; from sockpqd.pqctl.main import main\ntry: main(sys.argv[1:])\n" \
              "finally: print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "SOCKPQ_SERVERS": cluster.addresses[0]}
    ended = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert not spared & set(ended.stderr.split())


def test_the_operators_page_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs/OPERATIONS.md").read_text()
    table = page[page.index("keys of `--json`"):]
    for path in LEAVES:
        command = " ".join(path)
        shorter = command.replace("cluster online", "cluster offline").replace("node online", "node offline")
        assert f"`{command}" in table or (f"`{shorter}" in table and "`online`" in table), command
