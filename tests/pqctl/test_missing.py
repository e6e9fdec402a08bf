"""The message about something that does not exist: its name, similar ones, and where to look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, USAGE_ERROR
from tests.pqctl.running import run

QUEUE = "there is no queue nosuch (`pqctl queue list` shows all)\n"
SIMILAR_QUEUE = "there is no queue mial (did you mean mail?)\n"
PULSE = "there is no pulse nosuch (`pqctl pulse list` shows all)\n"
WORKERS = "there is no pool of workers nosuch (`pqctl worker list` shows all)\n"
NODE = "there is no node 'nosuch'; there are: n1, n2, n3\n"
JOB = "job 999999 is not running (any more): `pqctl job running` shows those that are\n"


@pytest.fixture
def servers(nodes: LocalCluster) -> Iterator[list[str]]:
    with Client(nodes.servers) as client:
        client.put("mail", b"")
        client.topic_bind("news", "mail")
        yield nodes.servers
        client.topic_delete("news")
        client.queue_delete("mail", force=True)


@pytest.mark.parametrize(("arguments", "told"), [
    ("queue delete nosuch", QUEUE), ("queue config nosuch", QUEUE), ("queue resume nosuch", QUEUE),
    ("queue purge nosuch all --yes", QUEUE), ("queue delete mial", SIMILAR_QUEUE),
    ("queue config mail --pulse nosuch", PULSE), ("queue create other --pulse nosuch", PULSE),
    ("pulse stat nosuch", PULSE), ("pulse watch nosuch", PULSE), ("pulse delete nosuch", PULSE),
    ("pulse set nosuch x", PULSE), ("pulse config nosuch --rate 4", PULSE),
    ("worker stop nosuch", WORKERS), ("worker pause nosuch", WORKERS), ("worker set nosuch --max 4", WORKERS),
    ("topic delete new", "there is no topic new (did you mean news?)\n"),
    ("topic unbind news other", "other is not bound to news: `pqctl topic list news` shows what is\n"),
    ("topic unbind news mail --pattern a.*",
     "mail is not bound to news with the pattern a.*: `pqctl topic list news` shows what is\n"),
    ("cluster remove nosuch", NODE), ("cluster transfer nosuch", NODE), ("node offline nosuch", NODE),
    ("job change 999999 --priority 1", JOB), ("job delete 999999", JOB), ("job touch 999999", JOB),
    ("job delete mial/k", SIMILAR_QUEUE), ("job show mial/k", SIMILAR_QUEUE),
    ("job delete mail/k", "there is no job k of mail: `pqctl queue peek mail` shows the first that are ready\n"),
    ("session close 999999", "there is no session 999999 (`pqctl session list` shows all)\n"),
    ("cron delete nosuch", "no run of nosuch waits in queue cron (`pqctl cron list` shows all)\n"),
    ("item show nosuch", "there is no item nosuch (`pqctl item list` shows all)\n"),
    ("item retry nosuch", "there is no item nosuch (`pqctl item list` shows all)\n"),
    ("item cancel nosuch --yes", "there is no item nosuch (`pqctl item list` shows all)\n"),
    ("item release nosuch", "item nosuch is not held (`pqctl item list --held` shows those that are)\n"),
    ("group show nosuch", "there is no group nosuch (`pqctl group list` shows all)\n"),
    ("group delete nosuch", "there is no group nosuch (`pqctl group list` shows all)\n"),
    ("group resume nosuch",
     "group nosuch is neither paused nor asleep (`pqctl group list` shows those that are paused)\n"),
    ("sched group nosuch", "no group nosuch has jobs, or had some lately: group_keep of `pqctl sched config` says how "
                           "many seconds it is remembered\n"),
])
def test_it_is_named(servers: list[str], capsys: pytest.CaptureFixture[str], arguments: str, told: str) -> None:
    assert run(capsys, "--servers", ",".join(servers), *arguments.split()) == (REFUSED, "", told)


@pytest.mark.parametrize("arguments", ["queue pause mial in", "queue config mial --limit 4"])
def test_a_queue_that_is_made_by_a_command_is_said_to_be_new(
    servers: list[str], capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    both = ("--servers", ",".join(servers))
    assert run(capsys, *both, *arguments.split())[::2] == (DONE, "mial is a new queue (did you mean mail?)\n")
    assert run(capsys, *both, *arguments.split())[::2] == (DONE, "")
    assert run(capsys, *both, "queue", "delete", "mial")[0] == DONE


def test_a_queue_that_a_refused_command_did_not_make_is_not_said_to_be_new(
    servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, told = run(capsys, "--servers", ",".join(servers), "queue", "config", "mial", "--group-limit", "3")
    assert (code, out) == (USAGE_ERROR, "")
    assert "contradicts" in told
    assert "is a new queue" not in told


def test_what_goes_to_no_queue_is_said_to_do_so(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--servers", ",".join(servers), "topic", "publish", "nosuch", "x")
    assert (code, out) == (
        DONE, "1 byte not queued: no queue is bound to nosuch for it (`pqctl topic list` shows all bindings)\n")
