"""The catalog is the only list of verbs: one that is added here, by a row and a grammar function, works everywhere."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from sockpqd.core.handlers import cost, dispatch
from sockpqd.core.handlers.table import Handler
from sockpqd.core.ops.replies import Accepted, QueueNotFound, Reply
from sockpqd.core.state import State
from sockpqd.gateway import rights
from sockpqd.gateway.auth import permissions as may
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.commands import catalog, write
from sockpqd.gateway.protocol.arguments import ArgumentError, name
from sockpqd.gateway.protocol.command import Command, InTransaction, Kind, Row, Words
from tests.gateway.helpers.memory import MemoryGateway

GATEWAY = Path(__file__).parents[3] / "gateway"
GRAMMAR = GATEWAY / "protocol" / "grammar"


# ---- all that a verb needs: an operation and what it does, of core; and of the gateway how it is read, and its row

class Poke(Struct, array_like=True, tag=99, gc=False, frozen=True):
    """The command that asks whether there is such a queue."""

    queue: str


executed: list[str] = []


def poke(state: State, operation: Poke, seed: int) -> Reply:
    executed.append(operation.queue)
    return Accepted() if operation.queue in ("mail", "print") else QueueNotFound()


def poke_line(words: Words) -> Command:
    if len(words) != 2:
        raise ArgumentError("POKE takes a queue")
    return Command(Poke(name(words[1])))


HANDLER = Handler(poke, cost.small, in_batch=True, in_request=True)
ROW = Row(
    b"POKE", poke_line, may.queue, write.proposed, Kind.LOGGED, 1, numbered=True, in_transaction=InTransaction.QUEUED)
OUTSIDE = Row(b"POKE", poke_line, may.queue, write.proposed, Kind.LOGGED, 1)       # neither behind REQ nor behind BEGIN


@pytest.fixture
def gateway_talk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what one client gets that sends these bytes, to a gateway with the verb, and what was counted then."""
    executed.clear()
    monkeypatch.setitem(dispatch.EXECUTE, Poke, HANDLER.execute)
    monkeypatch.setitem(dispatch.COSTS, Poke, HANDLER.cost)
    monkeypatch.setitem(dispatch.REQUESTED, Poke, HANDLER.execute)
    monkeypatch.setitem(dispatch.ATOMIC, Poke, HANDLER.execute)

    def talk(data: bytes, user: str | None = None, row: Row = ROW) -> tuple[bytes, int]:
        async def run() -> tuple[bytes, int]:
            users = {"mail": Account(rights.of_text("queue:mail*"), None)} if user else None
            gateway = MemoryGateway(Path("unused"), users=users, verbs=catalog.verbs(row))
            client = gateway.connect(user=user)
            client.send(data)
            await gateway.settle()
            found = client.take(), gateway.hub.tally.by_verb()["POKE"]
            await gateway.close()
            return found
        return asyncio.run(run())
    return talk


def test_a_new_verb_is_executed_in_its_order_and_counted(gateway_talk: Any) -> None:
    assert gateway_talk(b"PUT mail 0 1\r\naPOKE mail\r\npoke nobody\r\nPING\r\n") == (
        b"200 OK\r\n200 OK\r\n404 Queue Not Found\r\n200 OK\r\n", 2,
    )


def test_what_is_malformed_is_refused(gateway_talk: Any) -> None:
    assert gateway_talk(b"POKE\r\nPOKE a b\r\nREQ 1 POKE a b\r\nPING\r\n") == (
        b"400 Bad Arguments: POKE takes a queue\r\n" * 3 + b"200 OK\r\n", 0,
    )


def test_it_may_stand_behind_req_where_its_row_says_so(gateway_talk: Any) -> None:
    assert gateway_talk(b"REQ 1 POKE mail\r\n") == (b"404 Session Not Found\r\n", 0)
    assert gateway_talk(b"REQ 1 POKE mail\r\n", row=OUTSIDE) == (b"400 Bad Arguments: POKE cannot have REQ\r\n", 0)


def test_in_a_session_it_is_executed_once(gateway_talk: Any) -> None:
    lines = b"SESSION TTL 60\r\nREQ 1 POKE mail\r\nREQ 2 POKE nobody\r\nREQ 1 POKE mail\r\nREQ 1 POKE print\r\n"
    said, counted = gateway_talk(lines)
    assert said.partition(b"\r\n")[2] == (
        b"200 OK\r\n404 Queue Not Found\r\n200 OK\r\n409 Request Mismatch\r\n"
    )
    assert counted == 4
    assert executed == ["mail", "nobody"]


def test_a_transaction_executes_it(gateway_talk: Any) -> None:
    assert gateway_talk(b"BEGIN\r\nPOKE mail\r\nPUT print 0 1\r\naCOMMIT\r\n") == (
        b"200 OK\r\n202 Queued\r\n202 Queued\r\n200 OK 2\r\n200 OK\r\n200 OK\r\n", 1,
    )
    assert gateway_talk(b"BEGIN\r\nPOKE mail\r\nPOKE nobody\r\nCOMMIT\r\n") == (
        b"200 OK\r\n202 Queued\r\n202 Queued\r\n409 Aborted 2 404 Queue Not Found\r\n", 2,
    )


def test_it_cannot_stand_in_a_transaction_where_its_row_does_not_say_so(gateway_talk: Any) -> None:
    assert gateway_talk(b"BEGIN\r\nPOKE mail\r\nCOMMIT\r\n", row=OUTSIDE) == (
        b"200 OK\r\n400 Bad Arguments: POKE cannot stand between BEGIN and COMMIT\r\n"
        b"409 Aborted 1 400 Bad Arguments: POKE cannot stand between BEGIN and COMMIT\r\n", 1,
    )


def test_its_right_is_asked_for(gateway_talk: Any) -> None:
    assert gateway_talk(b"POKE mail\r\nPOKE print\r\n", user="mail") == (b"200 OK\r\n403 Forbidden\r\n", 1)


# ---- no second list

def test_no_other_file_names_the_verbs() -> None:
    """Words of the protocol stand in its grammar and in texts; as names of verbs only in the catalog."""
    verbs = {word.decode() for row in catalog.VERBS.rows for word in row.word.split()}
    for path in GATEWAY.rglob("*.py"):
        if path.name == "catalog.py" or GRAMMAR in path.parents:
            continue
        named = set(re.findall(r'b"([A-Z]+)"', path.read_text())) & verbs
        # The parser reads REQ, which is no verb, and the jobs of a PUTS by the grammar of PUT.
        assert named <= ({"PUT"} if path.name == "puts_reader.py" else set()), path


def test_every_row_can_be_read_and_no_row_hides_another() -> None:
    words = [row.word for row in catalog.VERBS.rows]
    assert all(re.fullmatch(rb"[A-Z]+( [A-Z]+)?", word) for word in words)
    rows = [(row.word, row.parse) for row in catalog.VERBS.rows]
    assert len(set(rows)) == len(rows)
    # Rows of one word stand together, in the order in which they are asked.
    assert [word for word, _ in itertools.groupby(words)] == list(dict.fromkeys(words))
    # Only what goes through the log has a number, and CLONE, which is the log's from a point on.
    assert {row.word for row in catalog.VERBS.rows if row.numbered and row.kind is not Kind.LOGGED} == {b"CLONE"}


def test_before_auth_all_but_the_open_verbs_are_answered_the_same() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), users={"mail": Account(rights.of_text("admin"), None)})
        lines = (b"SYNC GET q 1 1", b"SYNC PUT q 0 3\r\nabc", b"SNAPSHOT 1 10.0.0.1 5", b"TOTAL", b"PUTS 1\r\nq 0 0")
        for line in lines:
            client = gateway.connect()
            client.send(line + b"\r\nPING\r\n")
            await gateway.settle()
            assert client.take() == b"401 Auth Required\r\n200 OK\r\n", line
        await gateway.close()
    asyncio.run(run())
