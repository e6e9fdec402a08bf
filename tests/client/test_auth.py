"""Users: when a client authenticates, and how it handles refusals."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator
from typing import BinaryIO

import pytest
import sockpq
from sockpq import (
    AuthError,
    BadArguments,
    Busy,
    Client,
    ForbiddenError,
    NotExecuted,
    OutcomeUnknown,
    Refused,
    User,
    aio,
)
from sockpq._backends.access import Access
from sockpq._backends.asyncio_stream import TransportStream
from sockpq._backends.sync import SocketStream, ThreadNetwork, run
from sockpq._engine.probe import ask
from sockpq._protocol.addresses import Address, parse_server
from sockpq._protocol.commands import cluster

from sockpqd import core
from sockpqd.core import SetUser
from tests.client.conftest import EARLY, MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster, accounts
from tests.client.scripted_server import ScriptedServer
from tests.waiting import at_most

SECRET = "a-secret-that-nobody-may-see"
ANN = {"user": "ann", "secret": SECRET}


@pytest.fixture
def guarded() -> Iterator[MemoryCluster]:
    """A cluster whose servers require authentication."""
    with MemoryCluster(users={"ann": SECRET}, features=EARLY) as cluster:
        yield cluster


def attempts(cluster: MemoryCluster) -> list[str]:
    """Return the lines with which clients have authenticated."""
    return [line for server in cluster.servers for line in server.received if line.startswith("AUTH")]


@pytest.fixture
def ann(guarded: MemoryCluster, make_client: MakeClient) -> Client:
    return make_client(guarded.addresses, timeout=30, server_timeout=0.5, connect_timeout=0.5, **ANN)


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that seem to be on other machines."""
    for stream in (SocketStream, TransportStream):
        monkeypatch.setattr(stream, "peer", lambda _: Address("10.0.0.1", 11361))


# who is let in

def test_every_connection_says_who_it_is(guarded: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"x")
    assert ann.put_many("q", [b"y", b"z"]) == 2
    job = ann.get("q", expire=30)
    assert job is not None
    job.done()
    assert ann.get("q", block=True, expire=30, wait=0.1) is not None
    assert ann.total("q", server=guarded.addresses[1]).jobs == 1
    ann.cluster_transfer("n2")
    assert ann.cluster_status()
    assert ann.put("q", b"after").item is None
    for server in guarded.servers:
        assert server.accepted > 0
        assert server.received.count(f"AUTH ann {SECRET}") == server.accepted


def test_a_survey_says_it_too(guarded: MemoryCluster) -> None:
    assert [view.error for view in sockpq.survey(guarded.addresses, **ANN)] == [None] * 3
    assert all(isinstance(view.error, AuthError) for view in sockpq.survey(guarded.addresses))


def test_who_only_asks_whether_a_server_lives_does_not_say_who_it_is(guarded: MemoryCluster) -> None:
    """A blocked call asks repeatedly, and a server may need a tenth of a second to check a secret."""
    network = ThreadNetwork(Access(None, "ann", SECRET))
    server = guarded.servers[0]
    assert run(ask(network, parse_server(server.address), [cluster.PING], 5)).failure is None
    assert server.received == ["PING"]


def test_a_session_begins_without_waiting_for_the_answer(make_client: MakeClient) -> None:
    """AUTH and SESSION are on their way before either is answered."""
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        if line.startswith("AUTH"):
            assert stream.readline().startswith(b"SESSION TTL")
            connection.sendall(b"200 OK\r\n200 OK SESSION 1_ab TTL 900\r\n")
        else:
            connection.sendall(b"200 OK\r\n")

    with ScriptedServer(answer) as server:
        make_client(server.address, timeout=30, **ANN).put("q", b"")


def test_without_a_session_nothing_is_executed_before_the_answer(make_client: MakeClient) -> None:
    """A server that does not need AUTH may refuse it, too: then nothing must have been executed."""
    lines: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lines.append(line)
        time.sleep(0.05)
        connection.sendall(b"403 Forbidden\r\n" if line.startswith("AUTH") else b"200 OK\r\n")

    with ScriptedServer(answer) as server:
        client = make_client(server.address, timeout=30, sessions=False, **ANN)
        with pytest.raises(AuthError):
            client.put("q", b"")
        with pytest.raises(AuthError):
            client.put_many("q", [b"", b""])
        with pytest.raises(AuthError):
            client.get("q", block=True)
    assert lines == [f"AUTH ann {SECRET}"] * 3


@pytest.mark.usefixtures("far_away")
def test_a_secret_does_not_leave_the_machine_without_tls(guarded: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"x")
    assert len(guarded.bodies("q")) == 1
    assert len(attempts(guarded)) > 2
    assert not any(SECRET in attempt for attempt in attempts(guarded))


@pytest.mark.usefixtures("far_away")
@pytest.mark.parametrize("nonce", [b"", b"abc", b"0" * 14, b"g" * 32])
def test_a_nonce_that_is_none(make_client: MakeClient, nonce: bytes) -> None:
    """With a short one a server could collect the answers to all possible nonces."""
    lines: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lines.append(line)
        connection.sendall(b"334 %s\r\n" % nonce)

    with ScriptedServer(answer) as server:
        client = make_client(server.address, timeout=0.3, **ANN)
        with pytest.raises(NotExecuted):
            client.put("q", b"")
    assert set(lines) <= {"AUTH ann"}


@pytest.mark.parametrize("line", [b"400 Bad Arguments\r\n", b"501 Not Supported\r\n"])
@pytest.mark.parametrize("far", [False, True])
def test_a_server_without_users_lets_everybody_in(
    make_client: MakeClient, line: bytes, far: bool, request: pytest.FixtureRequest
) -> None:
    if far:
        request.getfixturevalue("far_away")

    def answer(connection: socket.socket, stream: BinaryIO, command: str) -> None:
        connection.sendall(line if command.startswith("AUTH") else b"200 OK\r\n")

    with ScriptedServer(answer) as server:
        make_client(server.address, timeout=30, **ANN).put("q", b"")
        make_client(server.address, timeout=30, sessions=False, **ANN).put("q", b"")


# who is not

def test_a_wrong_secret_is_told_at_once_and_never_shown(guarded: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(guarded.addresses, timeout=30, user="ann", secret="wrong-and-secret")
    with at_most(15):
        for call in (
            lambda: client.put("q", b"x"),
            lambda: client.put_many("q", [b"x"]),
            lambda: client.total(server=guarded.addresses[0]),
            lambda: client.cluster_remove("n1"),
            client.cluster_status,
        ):
            with pytest.raises(AuthError) as error:
                call()
            assert "the server refuses user 'ann' with this secret" in str(error.value)
            cause: BaseException | None = error.value
            while cause:
                assert "wrong-and-secret" not in f"{cause!r} {cause}"
                cause = cause.__cause__ or cause.__context__
    assert guarded.bodies("q") == []


def test_a_refusal_may_take_its_time(make_client: MakeClient) -> None:
    """A server answers a wrong secret after a second: longer than it has to report whether it leads."""
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        time.sleep(0.7)
        connection.sendall(b"403 Forbidden\r\n")

    with ScriptedServer(answer) as one, ScriptedServer(answer) as two:
        client = make_client([one.address, two.address], timeout=30, connect_timeout=0.3, **ANN)
        with at_most(5), pytest.raises(AuthError):
            client.put("q", b"")
        assert all(isinstance(view.error, AuthError) for view in sockpq.survey([one.address], 0.3, **ANN))


def test_a_client_without_a_user_is_told_that_one_is_needed(guarded: MemoryCluster, make_client: MakeClient) -> None:
    for settings in ({}, {"sessions": False}):
        client = make_client(guarded.addresses[0], timeout=30, **settings)
        with pytest.raises(AuthError, match="401 Auth Required"):
            client.put("q", b"x")
        with pytest.raises(AuthError, match="401 Auth Required"):
            client.put_many("q", [b"x", b"y"])
    client.ping(guarded.addresses[0])
    assert client.caps(guarded.addresses[0])


def test_an_overloaded_server_is_tried_again(guarded: MemoryCluster, make_client: MakeClient) -> None:
    lines: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lines.append(line)
        connection.sendall(b"503 Busy\r\n")
        connection.close()

    with ScriptedServer(answer) as server, pytest.raises(Busy):
        make_client(server.address, timeout=2, **ANN).put("q", b"")
    assert len(lines) > 1


def test_nothing_is_sent_over_a_connection_whose_login_failed(make_client: MakeClient) -> None:
    lines: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lines.append(line)
        connection.sendall(b"503 Busy\r\n" if len(lines) == 1 else b"200 OK\r\n")

    with ScriptedServer(answer) as server:
        make_client(server.address, timeout=30, sessions=False, **ANN).put("q", b"")
    assert lines == [f"AUTH ann {SECRET}", f"AUTH ann {SECRET}", "PUT q 0 0"]


def test_a_server_that_never_answers_auth_costs_no_more_than_its_time(make_client: MakeClient) -> None:
    with ScriptedServer(lambda *_: None) as server:
        for settings in ({}, {"sessions": False}):
            with at_most(5), pytest.raises(NotExecuted):
                make_client(server.address, timeout=0.5, server_timeout=0.2, **settings, **ANN).put("q", b"")


@pytest.mark.parametrize("settings", [{}, {"sessions": False}])
def test_an_answer_to_auth_that_is_none_leaves_nothing_unknown(
    make_client: MakeClient, settings: dict[str, bool]
) -> None:
    with ScriptedServer(lambda connection, *_: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")) as server:
        client = make_client(server.address, timeout=0.3, **settings, **ANN)
        with pytest.raises(NotExecuted):
            client.put("q", b"")


@pytest.mark.usefixtures("far_away")
def test_the_same_when_it_is_challenged(make_client: MakeClient) -> None:
    with ScriptedServer(lambda *_: None) as server, pytest.raises(NotExecuted, match="no answer to AUTH"):
        make_client(server.address, timeout=0.5, connect_timeout=0.2, **ANN).put("q", b"")


def test_a_user_who_was_deleted_is_told_so_and_can_come_back(guarded: MemoryCluster, make_client: MakeClient) -> None:
    guarded.execute(SetUser("bob", core.User("put", SECRET.encode())))
    client = make_client(guarded.addresses, timeout=30, user="bob", secret=SECRET)
    client.put("q", b"1")
    guarded.execute(SetUser("bob", None))
    with pytest.raises(AuthError):
        client.put("q", b"2")
    guarded.execute(SetUser("bob", core.User("put", SECRET.encode())))
    client.put("q", b"3")
    assert guarded.bodies("q") == [b"1", b"3"]


def test_a_missing_right_is_told_and_nothing_is_repeated(guarded: MemoryCluster, ann: Client) -> None:
    guarded.change_users({"ann": SECRET}, "get")
    with pytest.raises(ForbiddenError, match=r"^403 Forbidden: it needs the right put for queue q$"):
        ann.put("q", b"x")
    with pytest.raises(ForbiddenError, match=r"^403 Forbidden: it needs the right put for queue q$"):
        ann.put_many("q", [b"x", b"y"])
    with pytest.raises(ForbiddenError, match="it needs the right admin for all queues") as refused:
        ann.users()
    assert refused.value.needs == "admin for all queues"
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert ann.get("q") is None
    assert [line for server in guarded.servers for line in server.received if line.startswith("PUT")] == [
        "PUT q 0 1"] * 3


def test_a_right_that_was_lost_while_an_answer_was_does_not_make_it_certain(
    guarded: MemoryCluster, make_client: MakeClient
) -> None:
    client = make_client(guarded.addresses[0], timeout=30, sessions=False, retry_unknown=True, **ANN)

    guarded.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE)
    guarded.servers[0].script.on_loss = lambda: guarded.servers[0].change_users(accounts({"ann": SECRET}, "get"))
    with pytest.raises(OutcomeUnknown):
        client.put("q", b"x")
    assert guarded.bodies("q") == [b"x"]


# what is given

@pytest.mark.parametrize("settings", [
    {"user": "ann"}, {"secret": SECRET}, {"user": "an n", "secret": SECRET}, {"user": "", "secret": SECRET},
    {"user": "ann", "secret": ""}, {"user": "ann", "secret": f"{SECRET} "},
    {"user": "ann", "secret": f"{SECRET}\r\nQUIT"}, {"user": "ann", "secret": f"{SECRET}\udcff"},
    {"user": "ann", "secret": SECRET * 40},
])
@pytest.mark.parametrize("kind", [sockpq.Client, aio.Client, sockpq.survey])
def test_what_is_no_user_or_no_secret_is_found_before_anything_is_sent(kind: type, settings: dict[str, str]) -> None:
    with pytest.raises(BadArguments) as error:
        kind("127.0.0.1:1", **settings)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("settings", [{"user": 1, "secret": SECRET}, {"user": "ann", "secret": SECRET.encode()}])
def test_wrong_types_are_type_errors(settings: dict[str, object]) -> None:
    with pytest.raises(TypeError) as error:
        sockpq.Client("127.0.0.1:1", **settings)  # type: ignore[arg-type]
    assert SECRET not in str(error.value)


def test_a_secret_is_in_no_picture_of_what_has_it() -> None:
    made = Access(None, "ann", SECRET)
    assert made.login is not None
    shown = [made, made.login, made.login.plain(), made.login.response(b"nonce"),
             cluster.set_user("bob", "put", SECRET)]
    for one in shown:
        assert SECRET not in f"{one!r} {one}"
        assert SECRET.encode().hex() not in f"{one!r} {one}"
    assert SECRET.encode() in made.login.plain().line


# the users themselves

def test_users_are_made_listed_and_deleted(guarded: MemoryCluster, ann: Client) -> None:
    ann.set_user("bob", ["put:mail*", "get", "get"], "sixteen-letters!")
    ann.set_user("carl", "-", "ä" * 32)
    assert {name: (user.rights, user.key.decode()) for name, user in guarded.users().items()} == {
        "bob": ("put:mail*,get", "sixteen-letters!"), "carl": ("-", "ä" * 32)}
    assert ann.users() == [
        User("ann", ("admin",), True), User("bob", ("put:mail*", "get"), False), User("carl", (), False)]
    ann.delete_user("carl")
    assert [user.name for user in ann.users()] == ["ann", "bob"]
    with pytest.raises(Refused, match="404 User Not Found"):
        ann.delete_user("carl")
    for call in (lambda: ann.delete_user("ann"), lambda: ann.set_user("ann", "put", SECRET)):
        with pytest.raises(Refused, match="409 User In File"):
            call()


@pytest.mark.parametrize(("name", "rights", "secret"), [
    ("b b", "put", SECRET), ("bob", "putt", SECRET), ("bob", "put:mail", SECRET), ("bob", "put:*", SECRET),
    ("bob", "put,,get", SECRET), ("bob", "", SECRET), ("bob", "put", "fifteen-letters"), ("bob", "put", "x" * 65),
    ("bob", "put, get", SECRET), ("bob", [f"put:{number}*" for number in range(20_000)], SECRET),
])
def test_what_is_no_user_is_not_sent(name: str, rights: str | list[str], secret: str) -> None:
    with pytest.raises(BadArguments) as error:
        cluster.set_user(name, rights, secret)
    assert secret not in str(error.value)
