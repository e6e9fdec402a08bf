"""The inbox: the effect of a job happens once, with each way in which it is delivered again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import BadArguments, Client, Job, JobNotFound, OutcomeUnknown, aio
from sockpq.testing import Server
from sockpq_outbox import NoIdentity, create_tables, inbox, outbox
from sockpq_outbox.databases.base import run
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

HEADERS = {"id": "7"}


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    own_server.empty()
    with Client(own_server.address) as client:
        yield client


@pytest.fixture
def shop(sqlite_file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(sqlite_file)
    yield connection
    connection.close()


def taken(client: Client) -> Job:
    job = client.get("mail", expire=60, meta=True, headers=True)
    assert job is not None
    return job


def left(client: Client) -> int:
    total = client.total("mail")
    return total.jobs + total.running


def work(shop: sqlite3.Connection, job: Job, *, exact: bool = False) -> bool:
    with inbox.once(shop, job, exact=exact) as first:
        if first:
            shop.execute("INSERT INTO effects (text) VALUES (?)", (job.text,))
    return first


def effects(shop: sqlite3.Connection) -> list[str]:
    return [one for (one,) in shop.execute("SELECT text FROM effects")]


def marks(shop: sqlite3.Connection) -> list[str]:
    return [one for (one,) in shop.execute("SELECT job FROM sockpq_inbox")]


def test_the_work_and_the_mark_are_committed_and_the_job_is_done(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    assert work(shop, taken(client))
    assert (effects(shop), marks(shop), left(client)) == (["a"], ["mail/7"], 0)
    assert not shop.in_transaction


def test_a_job_that_comes_again_has_no_second_effect(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS, number=True)
    job = taken(client)
    with inbox.once(shop, Undone(job)) as first:        # it dies between COMMIT and DONE
        assert first
        shop.execute("INSERT INTO effects (text) VALUES ('a')")
    job.later()
    again = taken(client)
    assert again.id != job.id
    assert not work(shop, again)
    assert (effects(shop), left(client), marks(shop)) == (["a"], 0, [str(again.number)])


class Undone:
    """A job whose DONE does not reach the cluster, although the worker thinks so."""

    def __init__(self, job: Job) -> None:
        self.number, self.headers, self.queue, self.text = job.number, job.headers, job.queue, job.text

    def done(self) -> None:
        """Do nothing."""


def test_an_error_rolls_back_and_leaves_the_job(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    job = taken(client)
    with pytest.raises(sqlite3.OperationalError), inbox.once(shop, job):
        fail_after(shop)
    assert (effects(shop), marks(shop), left(client)) == ([], [], 1)
    assert work(shop, job)


def fail_after(shop: sqlite3.Connection) -> None:
    """Make an effect, and then an error."""
    shop.execute("INSERT INTO effects (text) VALUES ('a')")
    shop.execute("no SQL")


def test_a_job_put_by_the_work_is_part_of_it(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    with inbox.once(shop, taken(client)) as first:
        assert first
        outbox.put(shop, "next", "b")
    assert shop.execute("SELECT queue FROM sockpq_outbox").fetchall() == [("next",)]


def test_done_is_repeated_until_it_is_sure(
    client: Client, shop: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpq_outbox.inbox.PAUSE_S", 0.0)
    client.put("mail", "a", headers=HEADERS)
    job = taken(client)
    done, answers = Job.done, iter([OutcomeUnknown("lost"), OutcomeUnknown("lost"), None])

    def uncertain(self: Job) -> object:
        answer = next(answers)
        if answer:
            raise answer
        return done(self)

    monkeypatch.setattr(Job, "done", uncertain)
    assert work(shop, job)
    assert left(client) == 0


def test_done_that_is_never_sure_says_that_the_work_is_committed(
    client: Client, shop: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpq_outbox.inbox.DONE_S", -1.0)
    client.put("mail", "a", headers=HEADERS)
    job = taken(client)

    def lost(self: Job) -> None:
        raise OutcomeUnknown("lost")

    monkeypatch.setattr(Job, "done", lost)
    with pytest.raises(OutcomeUnknown) as failure:
        work(shop, job)
    assert failure.value.__notes__ == ["the work is committed: when the job comes again it finds its mark"]
    assert effects(shop) == ["a"]


# exact

def test_the_mark_goes_with_the_done(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    assert work(shop, taken(client), exact=True)
    assert (effects(shop), marks(shop), left(client)) == (["a"], [], 0)


def test_a_worker_that_slept_before_its_mark_does_nothing(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    zombie = taken(client)
    client.later(zombie.id)
    assert work(shop, taken(client), exact=True)
    with pytest.raises(JobNotFound):
        work(shop, zombie, exact=True)
    assert (effects(shop), marks(shop)) == (["a"], [])


def test_the_mark_of_a_job_that_somebody_else_has_stays(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", headers=HEADERS)
    job = taken(client)
    with inbox.once(shop, job, exact=True) as first:
        assert first
        client.later(job.id)            # its lease ends in the middle
    assert marks(shop) == ["mail/7"]
    assert not work(shop, taken(client), exact=True)
    assert marks(shop) == []


# identities

def test_identities(client: Client) -> None:
    client.put("mail", "a", headers=HEADERS)
    client.put("mail", "b", number=True, headers=HEADERS)
    first, second = client.get_many(2, "mail", expire=60)       # which are asked about
    assert run(inbox.identity_of(first)) == "mail/7"
    assert run(inbox.identity_of(second)) == str(second.number)


def test_a_job_without_an_identity_is_refused(client: Client, shop: sqlite3.Connection) -> None:
    client.put("mail", "a", key="k1")
    client.put("mail", "a", headers={"id": "x" * 500})
    job, long = taken(client), taken(client)
    with pytest.raises(NoIdentity, match="put it by an outbox or a task"):
        work(shop, job)
    with pytest.raises(NoIdentity, match="too long"):
        work(shop, long)
    with inbox.once(shop, job, identity="daily") as first:
        assert first
    assert marks(shop) == ["daily"]
    with pytest.raises(BadArguments, match="1 to 400 characters"):
        inbox.once(shop, long, identity="")


# asyncio

def test_with_asyncio(own_server: Server, client: Client, tmp_path: Path) -> None:
    assert asyncio.run(twice(own_server.address, tmp_path / "a.db")) == ([True, False], ["a"], 1)


async def twice(address: str, path: Path) -> tuple[list[bool], list[str], int]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    firsts = []
    async with aio.Client(address) as client:
        async with engine.begin() as connection:
            for statement in (*create_tables("sqlite"), "CREATE TABLE effects (text TEXT)"):
                await connection.execute(text(statement))
        for _ in range(2):
            await client.put("mail", "a", headers=HEADERS)
            job = await client.get("mail", expire=60, meta=True, headers=True)
            assert job is not None
            async with AsyncSession(engine) as session, inbox.once(session, job) as first:
                if first:
                    await session.execute(text("INSERT INTO effects (text) VALUES (:text)"), {"text": job.text})
                    await outbox.put(session, "next", b"")
            firsts.append(first)
        async with AsyncSession(engine) as session:
            found = [one for (one,) in await session.execute(text("SELECT text FROM effects"))]
            rows = (await session.execute(text("SELECT COUNT(*) FROM sockpq_outbox"))).scalar_one()
    await engine.dispose()
    return firsts, found, rows


def test_an_asyncio_session_wants_async_with(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(TypeError, match="async with"), inbox.once(AsyncSession(engine), object(), identity="x"):
        pass
