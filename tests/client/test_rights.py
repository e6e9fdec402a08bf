"""The rights that commands need, as errors name them."""

from __future__ import annotations

import pytest
from sockpq import ForbiddenError
from sockpq._protocol.command import Command, Repeat, single
from sockpq._protocol.rights import needed

from sockpqd.gateway.auth import permissions
from sockpqd.gateway.commands.catalog import ROWS

# SUBSCRIBE: the right depends on each of its events; PUTS: that of each PUT in it.
WITHOUT_RIGHT = permissions.anybody, permissions.any_user, permissions.subscribe, permissions.puts


def command(line: str, *members: Command[str]) -> Command[str]:
    return single(line, str, Repeat.FREELY)._replace(members=members)


@pytest.mark.parametrize(("line", "rights"), [
    ("PUT mail 0 5", "put for queue mail"),
    ("PUT a|b 0 5", "put for queues a, b"),
    ("PUT mail 0 5 IS order_1 AFTER x|y GROUP ann",
     "put for queue mail and item for item order_1 and item for items x, y and group for group ann"),
    ("PUT sums 0 3 NEW WAIT results", "put for queue sums and get for queue results"),
    ("GET", "get for all queues"), ("GET * EXPIRE 60", "get for all queues"), ("GETB EXPIRE 60", "get for all queues"),
    ("GET a|b EXPIRE 5 IS i7", "get for queues a, b"), ("GET NUMBER 17", "get for the queue of the job"),
    ("DONE 1", "get for the queue of the job"),
    ("MOVE 1 bills", "get for the queue of the job and put for queue bills"),
    ("CHANGE 17 PRI 3", "get for the queue of the job"), ("DELETE KEY mail k1", "queue for queue mail"),
    ("DELETE SEQ mail 17", "queue for queue mail"), ("PEEK NUMBER 17", "queue for the queue of the job"),
    ("PEEK mail READY", "queue for queue mail"), ("KICK mail 5", "queue for queue mail"),
    ("KICK JOB NUMBER 17", "queue for the queue of the job"), ("AWAIT KEY mail k1", "queue or put for queue mail"),
    ("QUEUE CONFIG mail TRIES 3 DEAD bad", "queue for queue mail and queue for queue bad"),
    ("QUEUE MOVE a b", "queue for queue a and queue for queue b"), ("FIND *", "queue for all queues"),
    ("TOPIC BIND news mail", "queue for topic @news and queue for queue mail"),
    ("ITEM HOLD NEW", "put for some queue"), ("ITEM CANCEL order_1", "item for item order_1"),
    ("CLUSTER OFFLINE", "admin for all queues"), ("CONFIG MAXDATA 5", "admin for all queues"),
    ("USER SET ann put 00", "admin for all queues, and a connection by TLS or on the server's own host"),
    ("NOVELTY mail", ""),
])
def test_they_are_read_from_the_line(line: str, rights: str) -> None:
    assert needed(command(line)) == rights


def test_those_of_a_batch_are_named_once_each_and_not_without_end() -> None:
    members = [command(f"PUT q{number // 2} 0 1") for number in range(10)]
    assert needed(command("PUTS 4", *members[:4])) == "put for queue q0 and put for queue q1"
    assert needed(command("PUTS 10", *members)) == (
        "put for queue q0 and put for queue q1 and put for queue q2 and 2 more")


def test_they_are_known_of_every_command_that_a_server_may_forbid() -> None:
    verbs = {row.word.decode() for row in ROWS if row.right not in WITHOUT_RIGHT}
    assert {verb for verb in verbs if not needed(command(f"{verb} a b c"))} == set()


def test_an_error_without_them_says_what_the_server_said() -> None:
    assert str(ForbiddenError("403 Forbidden")) == "403 Forbidden"
