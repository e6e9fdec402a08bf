"""There is a rule for everything a client can send."""

from __future__ import annotations

import itertools

import pytest

from sockpqd.core import Get, Put, PutWith, StoredNumber
from sockpqd.gateway import rights
from sockpqd.gateway.auth.permissions import anybody
from sockpqd.gateway.commands.catalog import VERBS as CATALOG
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.responses import FORBIDDEN, JOB_NOT_FOUND, OFFLINE_MODE, TICKET_NOT_FOUND
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.parsing import read_line

VERBS = sorted({row.word.split()[0] for row in CATALOG.rows} | {b"REQ"})
CLUSTER = [row.word.split()[1] for row in CATALOG.rows if row.word.startswith(b"CLUSTER ")]
# A word for each place of each line; with them every verb has a line that is right.
WORDS = (
    b"q", b"0", b"1", b"*", b"LIST", b"SET", b"put", b"00112233445566778899aabbccddeeff", b"DONE", b"STATUS", b"user",
    b"RANDOM", b"SHOW",
)
NOTHING = rights.of_text("-")
EVERYTHING = rights.of_text("admin")


def may(granted: rights.Rights, command: Command, cluster: FakeCluster) -> bytes | None:
    """Return the answer of the rule of the command's row."""
    return command.row.right(granted, command, cluster)


def read(words: list[bytes]) -> Command | None:
    """Return the command in the line, None when there is none."""
    try:
        return CATALOG.read(list(words))
    except ArgumentError:
        return None


def lines(verb: bytes) -> list[list[bytes]]:
    """Return short lines of this verb, right ones and wrong ones."""
    found = [[verb, *words] for count in range(4) for words in itertools.product(WORDS, repeat=count)]
    found += [[verb, word] for word in CLUSTER] + [[verb, word, b"n4"] for word in CLUSTER]
    found += [[verb, b"ADD", b"n4", b"h", b"1", b"h", b"2"], [verb, b"1", b"PUT", b"q", b"0", b"1"]]
    found += [[verb, b"SET", b"user", b"put", b"00112233445566778899aabbccddeeff"], [verb, b"1_9f3c5a7e11d0c2b4"]]
    found.append([verb, b"STAT", b"NUMBER", b"1"])
    found.append([verb, b"NUMBER", b"1"])
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_who_has_all_rights_may_say_every_verb(verb: bytes) -> None:
    right = 0
    for words in lines(verb):
        command = read(words)
        if command is not None:
            right += 1
            assert may(EVERYTHING, command, FakeCluster()) in (None, b"404 Job Not Found\r\n"), words
    assert right > 0


@pytest.mark.parametrize(("text", "refused"), [
    ("put:mail*", None), ("queue:mail*", None), ("get", FORBIDDEN), ("put:other*,queue:other*", FORBIDDEN),
])
def test_the_end_of_a_job_with_a_key_is_for_who_may_put_it(text: str, refused: bytes | None) -> None:
    assert may(rights.of_text(text), read_line("AWAIT KEY mail k"), FakeCluster()) == refused


@pytest.mark.parametrize(("line", "not_found"), [
    (b"DONE 9", JOB_NOT_FOUND), (b"PEEK NUMBER 9", JOB_NOT_FOUND), (b"AWAIT NUMBER 9", JOB_NOT_FOUND),
    (b"PULSE RESULT 9 OK", TICKET_NOT_FOUND),
])
def test_a_number_to_come_is_not_found_only_by_a_leader_with_its_lease(line: bytes, not_found: bytes) -> None:
    """A newer leader may have given it out."""
    command, granted, cluster = read(line.split()), rights.of_text("get:a*,queue:a*"), FakeCluster()
    assert command is not None
    cluster.serving = True
    assert may(granted, command, cluster) == not_found
    cluster.leased = False
    assert may(granted, command, cluster) == OFFLINE_MODE
    cluster.serving = False
    assert may(granted, command, cluster) is None, "it is refused later"


def test_before_auth_only_this_is_open() -> None:
    assert {row.word for row in CATALOG.rows if row.right is anybody} == {
        b"QUIT", b"PING", b"CAPS", b"HELP", b"AUTH", b"CLUSTER ID",
    }


# Everything that a user without any right may do (of events, hear what needs none; of lists, see none of their lines);
# whatever else there is, or will be, is refused.
FREE = {
    b"TOTAL", b"INTERCONNECT", b"SESSION", b"TAKEN", b"PING", b"CAPS", b"HELP", b"QUIT", b"AUTH", b"CLUSTER STATUS",
    b"CLUSTER LEADER", b"CLUSTER HASH", b"CLUSTER ID", b"CLUSTER REPLICA", b"SYNC", b"DONE", b"LATER", b"SNAPSHOT",
    b"BEGIN", b"COMMIT", b"ROLLBACK",
    b"POLICY", b"CONFIG", b"TOUCH", b"BURY", b"DELETE", b"CHANGE", b"PEEK", b"SUBSCRIBE", b"UNSUBSCRIBE",
    b"SCHED", b"WORKER", b"FIND", b"ITEM", b"GROUP", b"MAP",
}


def test_without_a_right_nothing_is_free_but_this() -> None:
    free = set()
    for verb in VERBS:
        for words in lines(verb):
            command = read(words)
            if command is not None and may(NOTHING, command, FakeCluster()) != FORBIDDEN:
                free.add(b" ".join(words[:2]) if verb == b"CLUSTER" else verb)
    # What is done with a job that does not run, also with REQ; SNAPSHOT and INTERCONNECT as the original's servers.
    assert free <= FREE | {b"REQ"}
    assert free >= FREE - {b"SNAPSHOT"}


# What each command needs, job 1 and the job with number 2 being of queue `mail`: these rights together, and no fewer.
NEEDED = [
    ("GET NUMBER 2", "get"), ("GET NUMBER 2 EXPIRE 5 META BOUND", "get"), ("DELETE NUMBER 2", "queue"),
    ("DELETE NUMBER 2 UNTAKEN", "queue"), ("CHANGE NUMBER 2 PRI 5", "queue"), ("PEEK NUMBER 2", "queue"),
    ("JOB STAT NUMBER 2", "queue"), ("KICK JOB NUMBER 2", "queue"), ("KICK mail 5 HERE", "queue"),
    ("BURY 1 HERE PRI 5", "get"), ("QUEUE PAUSE mail OUT FOR 5", "queue"), ("QUEUE PURGE mail BURIED", "queue"),
    ("GET mail", "get"), ("GET mail COUNT 5 META", "get"), ("GETB mail IS i WITHIN 5", "get"),
    ("GET mail BOUND", "get"), ("GETBE mail BY PRIORITY BOUND", "get"), ("DONE 1", "get"), ("DONE 1 LAST", "get"),
    ("DONE 1 1", "get"),
    ("LATER 1", "get"), ("LATER 1 1", "get"), ("LATER 1 YIELD", "get"), ("TOUCH 1", "get"), ("BURY 1", "get"),
    ("BURY 1 REASON lost", "get"), ("PUT mail 0 1", "put"), ("PUT mail 0 1 KEY k", "put"),
    ("PUT mail 0 1 NEW WAIT mail_done", "put get"), ("PUT mail 0 1 NEW WAIT mail_done TTL 5", "put get"),
    ("PUT mail 0 1 NEW WAIT mail_done WITHIN 5", "put get"), ("PUTS 2", "put"), ("MOVE 1 mail_next", "put get"),
    ("MOVE 1 mail_next DATA 5", "put get"), ("CHANGE 1 PRI 5", "get"), ("CHANGE 1 DATA 5", "get"),
    ("CHANGE KEY mail k PRI 5", "queue"), ("DELETE 1", "get"), ("DELETE KEY mail k", "queue"), ("PEEK 1", "get"),
    ("AWAIT NUMBER 2", "queue"), ("FIND mail", "queue"), ("FIND mail|mail2 STATE DONE", "queue"),
    ("PEEK KEY mail k", "queue"), ("PEEK mail READY", "queue"), ("KICK mail 5", "queue"),
    ("QUEUE CREATE mail", "queue"),
    ("QUEUE CONFIG mail", "queue"), ("QUEUE CONFIG mail LIMIT 5", "queue"), ("QUEUE DELETE mail", "queue"),
    ("QUEUE PURGE mail ALL", "queue"), ("QUEUE PAUSE mail IN", "queue"), ("QUEUE RESUME mail", "queue"),
    ("QUEUE PURGE mail RUNNING", "queue"), ("QUEUE PURGE mail OWN", "queue"),
    ("QUEUE DELETE mail FORCE LEAVE", "queue"), ("QUEUE MOVE mail mail_next COUNT 5 DIED print", "queue"),
    ("QUEUE STAT mail", "queue"), ("QUEUE CONFIG mail TRIES 5 DEAD mail_lost", "queue"),
]
KINDS = ("put", "get", "queue", "admin")


@pytest.fixture(scope="module")
def cluster() -> FakeCluster:
    """Return a cluster with job 1 of `mail` running, and job number 2 waiting there."""
    cluster = FakeCluster()
    numbered = PutWith(Put("mail", 0, b""), number=True)
    applied = cluster.machine.apply(1000, 0, 0, [Put("mail", 0, b""), Get(("mail",)), numbered])
    assert applied.replies[2] == StoredNumber(2)
    cluster.serving = True
    return cluster


def refusal(line: str, text: str, cluster: FakeCluster) -> bytes | None:
    """Return the answer to a user with these rights."""
    return may(rights.of_text(text), read_line(line), cluster)


@pytest.mark.parametrize("number", ["", "REQ 7 "])
@pytest.mark.parametrize(("line", "kinds"), NEEDED)
def test_each_command_needs_these_rights_for_each_queue_it_names(
    line: str, kinds: str, number: str, cluster: FakeCluster,
) -> None:
    verbs = line.split()
    if number and (verbs[0] in ("PEEK", "FIND", "AWAIT") or line == "QUEUE CONFIG mail" or verbs[1] == "STAT"):
        return      # REQ does not go with them
    line = number + line
    needed = kinds.split()
    for prefix in ("", ":mail*"):
        enough = ",".join(f"{kind}{prefix}" for kind in needed)
        assert refusal(line, enough, cluster) is None
    for missing in needed:
        others = [kind for kind in KINDS if kind != missing]
        assert refusal(line, ",".join([*others[:-1], "admin:mail*"]), cluster) == FORBIDDEN, missing
    elsewhere = ",".join(f"{kind}:print*" for kind in KINDS)
    of_others = None if "PUTS" in line or "NUMBER 2" in line else FORBIDDEN        # a number: it is not found
    assert refusal(line, elsewhere, cluster) == of_others


@pytest.mark.parametrize(("line", "text"), [
    ("PUT mail 0 1 NEW WAIT print", "put,get:mail*"), ("PUT mail 0 1 NEW WAIT print WITHIN 5", "put,get:mail*"),
    ("PUT mail 0 1 NEW WAIT print KEY k", "put,get:mail*"), ("PUT print 0 1 NEW WAIT mail KEY k", "put:mail*,get"),
    ("MOVE 1 print", "put:mail*,get"), ("GETB mail|print COUNT 5", "get:mail*"), ("GET * IS i", "get:mail*"),
    ("QUEUE CONFIG mail TRIES 5 DEAD print", "queue:mail*"), ("CONFIG GRACE 5", "put,get,queue,admin:mail*"),
])
def test_every_queue_that_is_named_counts(line: str, text: str, cluster: FakeCluster) -> None:
    assert refusal(line, text, cluster) == FORBIDDEN


@pytest.mark.parametrize("line", [
    "PUT mail 0 1 IS order_17", "PUT mail 0 1 IS order_17 KEY k", "PUT mail 0 1 IS order_17 GROUP g",
    "PUT mail|mail_b 0 1 IS order_17", "PUT @mail 0 1 IS order_17", "PUT mail 0 1 IS order_17 WAIT mail",
    "PUT mail 0 1 AFTER mail_1|order_17", "SUBSCRIBE FINI order_17", "SUBSCRIBE FINI mail_1|order_17",
    "CHANGE 1 IS order_17", "CHANGE KEY mail k IS order_17", "CHANGE SEQ mail 2 IS order_17",
    "CHANGE NUMBER 2 PRI 5 IS order_17",
])
def test_an_item_is_whose_right_covers_its_name(line: str, cluster: FakeCluster) -> None:
    queues = "put:mail*,put:@mail*,get:mail*,queue:mail*"
    assert refusal(line, queues, cluster) == FORBIDDEN
    assert refusal(line, f"{queues},item:mail*", cluster) == FORBIDDEN
    assert refusal(line, f"{queues},item:order*,item:mail*", cluster) is None
    assert refusal(line, f"{queues},item", cluster) is None
    assert refusal(line.replace("order_17", "mail_17"), queues, cluster) is None
    if line.startswith(("PUT", "CHANGE")):
        assert refusal(line.replace("order_17", "i17"), queues, cluster) is None        # made by NEW


def test_an_item_only_narrows_what_may_be_taken(cluster: FakeCluster) -> None:
    assert refusal("GETBE mail IS order_17", "get:mail*", cluster) is None


def test_an_id_that_was_never_given_is_nobodys(cluster: FakeCluster) -> None:
    for line in ("TOUCH 2", "BURY 2", "MOVE 2 q", "LATER 2 FIRST", "CHANGE 2", "DELETE 2", "PEEK 2", "DONE 1 2"):
        assert refusal(line, "put,get:mail*,queue:mail*", cluster) == JOB_NOT_FOUND, line
    assert refusal("DONE 2 1", "get:print*", cluster) == FORBIDDEN


@pytest.mark.parametrize(("granted", "allowed"), [
    ("-", ()), ("get:mail*", ("mail", "mail.x")), ("put:mail*,group:anna*", ("mail", "mail.x", "anna", "anna2")),
    ("queue:b*", ("bert",)), ("admin", ("mail", "mail.x", "anna", "anna2", "bert")),
])
def test_a_group_is_shown_to_those_with_a_right_for_it_or_for_the_queue_of_its_name(
    granted: str, allowed: tuple[str, ...],
) -> None:
    of_user, cluster = rights.of_text(granted), FakeCluster()
    shown = []
    for group in ("mail", "mail.x", "anna", "anna2", "bert"):
        command = read([b"SCHED", b"GROUP", group.encode()])
        assert command is not None
        if may(of_user, command, cluster) is None:
            shown.append(group)
    assert tuple(shown) == allowed
