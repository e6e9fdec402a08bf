"""Chords: an item counts their parts, and the body is called once, whichever program dies at whichever command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery, chain, chord, group, states
from celery.app.task import Context
from kombu.exceptions import OperationalError
from sockpq import Client, Job, NotSupported
from sockpq._engine.attempt import Attempt
from sockpq.testing import Server
from sockpq_kombu import client as client_module
from sockpq_kombu import link
from sockpq_kombu.channels import collected
from sockpq_kombu.client import client_of
from sockpq_kombu.results import backend as result_backend
from sockpq_kombu.results import chords
from sockpq_kombu.results.waiting import Spaced

from tests.client.pair import Pair
from tests.waiting import PATIENCE_S

ADD, TOTAL, FAILED, ERRBACK = "tests.add", "tests.total", "tests.failed", "tests.errback"
CALLS_MAX = 100         # far more than a chord of three parts makes


class Killed(BaseException):
    """The death of a process, at a command."""


class Death:
    """Ends a process at one of its commands, before or after it is executed."""

    def __init__(self, at: int, *, executed: bool) -> None:
        self.came = False
        self.commands = 0
        self._at = at
        self._executed = executed

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count the command in the block, and raise Killed before or after it if it is the last of this life."""
        self.commands += 1
        dies = self.commands > self._at or self.came
        if dies and (self.came or not self._executed):
            self.came = True
            raise Killed
        yield
        if dies:
            self.came = True
            raise Killed


class Mortal:
    """A client of a process that may die."""

    def __init__(self, client: Client, death: Death) -> None:
        self._client = client
        self._death = death

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found) or name in ("close", "events"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            with self._death.call():
                return found(*args, **kwargs)

        return call

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self._death.call(), self._client.transaction() as transaction:
            yield transaction


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    with Client(own_server.address, timeout=60) as made:
        yield made


class Project:
    """An app whose programs run in this process: authors, and workers that take one task after the other."""

    def __init__(self, server: Server | str, client: Client, host: str | None = None) -> None:
        self.host = host or uuid4().hex
        self.client = client
        self.called: dict[str, tuple[str, Any]] = {}    # for each message of a body or errback: the task, its argument
        address = server if isinstance(server, str) else server.address
        url = f"sockpq://{address}/{self.host}"
        self.app = Celery(broker=url, backend=url)
        self.app.conf.broker_transport_options = {"program": uuid4().hex}       # otherwise kombu shares connections

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(Killed):
            self.app.close()

    @property
    def bodies(self) -> list[Any]:
        """The argument of each call of the body."""
        return [argument for name, argument in self.called.values() if name == TOTAL]

    @property
    def errbacks(self) -> int:
        """The number of calls of errbacks."""
        return sum(name == ERRBACK for name, _ in self.called.values())

    @property
    def waiting(self) -> int:
        """The number of messages that wait."""
        return len(self.client.peek_queue(f"{self.host}.celery", count=100))

    def sig(self, name: str, *args: Any, **options: Any) -> Any:
        """A call of a task, written down."""
        return self.app.signature(name, args=args, options=options)

    def work(self, *, again: bool = False) -> None:
        """Execute all tasks that wait. `again`: each of a header twice, as when it was delivered again."""
        while (job := self.client.get(f"{self.host}.celery", meta=True)) is not None:
            try:
                for _ in range(1 + again):
                    self._execute(job)
            except Killed:
                self.client.later(job, first=True)
                raise
            self.client.done(job)

    def _execute(self, job: Job) -> None:
        head, _, body = job.data.partition(b"\n")
        message = json.loads(head)
        headers, name, (args, _, embedded) = message["headers"], message["headers"]["task"], json.loads(body)
        if name in (TOTAL, ERRBACK):
            assert job.meta is not None
            self.called[str(job.meta.key)] = name, args[0]
        request = Context(headers, **embedded, reply_to=message["properties"]["reply_to"])
        backend = self.app.backend
        if name == FAILED:
            backend.mark_as_failure(headers["id"], ValueError("no"), request=request)
            return
        result = sum(args) if name == ADD else args[0]
        backend.mark_as_done(headers["id"], result, request=request)
        if request.chain:
            *rest, following = request.chain
            self.app.signature(following).apply_async((result,), chain=rest)

    def left(self) -> list[str]:
        """The names of the queues of chords that are left."""
        return [queue.name for queue in self.client.queues() if queue.name.startswith(f"{self.host}.celery.chord.")]


@pytest.fixture
def project(own_server: Server, client: Client) -> Iterator[Project]:
    with Project(own_server, client) as made:
        yield made


def numbers(project: Project, count: int) -> list[Any]:
    return [project.sig(ADD, number) for number in range(count)]


def test_the_body_gets_the_values_in_order_and_nothing_is_left(project: Project) -> None:
    chord(numbers(project, 12), project.sig(TOTAL))()
    (queue,) = project.left()
    assert project.client.item_stat(queue).unfinished == 12
    project.work()
    assert project.bodies == [list(range(12))]
    assert project.left() == []


def test_a_part_that_returns_again_changes_nothing(project: Project) -> None:
    chord(numbers(project, 3), project.sig(TOTAL))()
    project.work(again=True)
    assert project.bodies == [[0, 1, 2]]
    assert project.left() == []


def test_chords_and_groups_in_chords(project: Project) -> None:
    inner = chord(numbers(project, 2), project.sig(TOTAL))
    last = chain(project.sig(ADD, 1), group(project.sig(ADD, 1), project.sig(ADD, 2)))
    chord([inner, group([project.sig(ADD, 4)] * 2), last, project.sig(ADD, 7)], project.sig(TOTAL))()
    project.work()
    assert project.bodies[0] == [0, 1]
    assert project.bodies[1:] == [[[0, 1], 4, 4, [2, 3], 7]]
    assert project.left() == []


def test_a_chord_whose_body_is_a_group(project: Project) -> None:
    chord(numbers(project, 3), group(project.sig(TOTAL), project.sig(TOTAL)))()
    project.work()
    assert project.bodies == [[0, 1, 2]] * 2


def test_an_empty_header(project: Project) -> None:
    chord([], project.sig(TOTAL))()
    project.work()
    assert project.bodies == [[]]


def test_a_part_that_fails_fails_the_body_when_all_have_returned(project: Project) -> None:
    result = chord([project.sig(FAILED), *numbers(project, 2)], project.sig(TOTAL))()
    assert project.app.backend.get_state(result.id) == states.PENDING
    project.work()
    assert project.bodies == []
    assert project.app.backend.get_state(result.id) == states.FAILURE
    assert "Dependency" in str(result.result)
    assert project.left() == []


def test_a_task_adds_a_part_to_its_chord(project: Project) -> None:
    chord(numbers(project, 2), project.sig(TOTAL))()
    (queue,) = project.left()
    first = project.client.peek_queue(f"{project.host}.celery")[0]
    embedded = json.loads(first.data.partition(b"\n")[2])[2]
    added = project.sig(ADD, 5).set(group_id=queue.rpartition(".")[2], chord=embedded["chord"], group_index=2)
    project.app.backend.add_to_chord(queue.rpartition(".")[2], added.freeze())
    added.delay()
    project.work()
    assert project.bodies == [[0, 1, 5]]


def test_the_results_of_a_group_and_of_a_header_can_be_counted_and_joined(project: Project) -> None:
    sent = group(numbers(project, 3))()
    body = chord(numbers(project, 3), project.sig(TOTAL))()
    for results in (sent, body.parent):
        assert not results.ready()
        assert results.completed_count() == 0
    project.work()
    for results in (sent, body.parent):
        assert results.ready()
        assert results.completed_count() == 3
        assert results.join(timeout=PATIENCE_S) == [0, 1, 2]
        assert results.join_native(timeout=PATIENCE_S) == [0, 1, 2]
    assert body.get(timeout=PATIENCE_S) == [0, 1, 2]


def test_servers_that_know_no_commands_of_items_will_do(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    knows = Attempt.knows

    async def knows_no_items(self: Attempt, words: Collection[str], deadline: float) -> bool:
        return "items" not in words and await knows(self, words, deadline)

    monkeypatch.setattr(Attempt, "knows", knows_no_items)
    with pytest.raises(NotSupported):
        project.client.items()
    chord([project.sig(ADD, 1), project.sig(ADD, 2)], project.sig(TOTAL))()
    project.work(again=True)
    assert project.bodies == [[1, 2]]


def test_of_two_that_see_the_end_one_calls_the_body(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    chord(numbers(project, 2), project.sig(TOTAL))()
    backend = project.app.backend
    call = backend._call_body
    waiting: list[Callable[[], None]] = []
    monkeypatch.setattr(backend, "_call_body", lambda *args: waiting.append(lambda: call(*args)))
    project.work(again=True)        # the second time the last part sees that all have returned
    assert len(waiting) == 2
    (queue,) = project.left()
    found = backend.chords.values(queue.rpartition(".")[2])
    monkeypatch.setattr(backend.chords, "values", lambda group: found)
    for call_body in waiting:
        call_body()
    monkeypatch.undo()
    project.work()
    assert project.bodies == [[0, 1]]


def test_the_body_of_a_cancelled_item_is_not_called(project: Project) -> None:
    chord(numbers(project, 3), project.sig(TOTAL))()
    (queue,) = project.left()
    assert project.client.item_cancel(queue) == 3
    project.work()
    assert project.bodies == []


def test_a_header_of_more_parts_than_the_servers_show_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (result_backend, chords):
        monkeypatch.setattr(module, "PARTS_MAX", 3)
    chord(numbers(project, 5), project.sig(TOTAL))()
    project.work()
    assert project.bodies == [[0, 1, 2, 3, 4]]


def test_a_body_of_more_messages_than_a_transaction_has(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "COMMANDS_MAX", 3)
    chord(numbers(project, 2), group([project.sig(TOTAL)] * 5))()
    project.work()
    assert project.bodies == [[0, 1]] * 5
    assert project.left() == []


def test_a_look_that_takes_long_is_taken_seldom() -> None:
    now, looks = [0.0], list[float]()

    def look() -> None:
        looks.append(now[0])
        now[0] += 0.5

    spaced = Spaced(look, lambda: now[0])
    while now[0] < 30.0:
        spaced()
        now[0] += 0.25
    assert looks == [1.0, 11.5, 22.0]


def test_tasks_and_results_may_be_in_several_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "clusters", {})
    with Pair() as pair, Client(pair.a.servers) as client, Project(pair.a.servers[0], client) as project:
        pair.set({f"{project.host}.celery.results": "b", f"{project.host}.there": "b"})
        group([project.sig(ADD, 1), project.sig(ADD, 2).set(queue="there")])()
        assert pair.count("a", f"{project.host}.celery") == (1, 0)
        assert pair.count("b", f"{project.host}.there") == (1, 0)
        chord(numbers(project, 2), project.sig(TOTAL))()
        project.work()
        assert project.bodies == [[0, 1]]
        assert pair.count("b", f"{project.host}.celery.results")[0] > 0


def deaths(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Project], object],
    run: Callable[[Project], object],
) -> Iterator[Project]:
    """Let a program die at its first command, at its second one, and so on, before or after it is executed.

    `prepare` does what other programs do first, `run` what the dying one does. Yields the project of the survivors.
    """
    for executed in (False, True):
        for at in range(CALLS_MAX):
            with Project(server, client) as others:
                prepare(others)
                if not dies(server, client, monkeypatch, others, Death(at, executed=executed), run):
                    break
                yield others
        else:
            pytest.fail("it makes more commands than expected")


def dies(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch, others: Project, death: Death,
    run: Callable[[Project], object],
) -> bool:
    """Let a program of this project run; returns False when it has ended before its death came."""
    made: list[Client] = []

    def mortal(*args: Any) -> Any:
        made.append(client_of(*args))
        return Mortal(made[-1], death)

    with monkeypatch.context() as patch:
        for module in (link, result_backend):
            patch.setattr(module, "client_of", mortal)
        dying = Project(server, client, others.host)
        dying.called = others.called
        with suppress(Killed):
            run(dying)
    for one in made:
        one.close()
    return death.came


def test_an_author_that_dies_at_any_command_has_the_body_called_once_or_never(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[int]()
    for others in deaths(own_server, client, monkeypatch, lambda others: None, lambda author: chord(
        numbers(author, 3), author.sig(TOTAL))(),
    ):
        sent = others.waiting
        others.work()
        assert others.bodies == {0: [], 3: [[0, 1, 2]]}[sent]
        calls[sent] += 1
    assert calls[0] > 5         # it died in many places
    assert calls[3] > 0


def test_an_author_that_dies_at_any_command_has_sent_all_of_a_group_or_nothing(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {others.waiting for others in deaths(
        own_server, client, monkeypatch, lambda others: None, lambda author: group(numbers(author, 3))(),
    )}
    assert sent == {0, 3}


def test_a_group_that_is_refused_is_refused_as_a_whole(project: Project, client: Client) -> None:
    project.sig(ADD, 1).delay()
    client.queue_config(f"{project.host}.celery", capacity=3)
    with pytest.raises(OperationalError, match="503 Queue Full"):
        group(numbers(project, 3))()
    assert project.waiting == 1


def test_a_group_that_no_server_takes_is_the_error_of_a_single_task(client: Client) -> None:
    with Server() as server, Project(server, client) as project:
        project.app.conf.broker_transport_options = {"patience": 0.5}
        project.app.conf.task_ignore_result = True
        group(numbers(project, 2))()
        server.stop()
        with pytest.raises(OperationalError):
            group(numbers(project, 2))()


def test_the_author_of_a_chord_makes_few_commands_however_many_parts_it_has(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Project(own_server, client) as others:
        counting = Death(1000, executed=True)
        chord(numbers(others, 1), others.sig(TOTAL))()      # the queue of tasks is there
        dies(own_server, client, monkeypatch, others, counting, lambda author: chord(
            numbers(author, 50), author.sig(TOTAL))())
        assert counting.commands < 10


def test_a_part_takes_two_commands(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commands(parts: int) -> int:
        with Project(own_server, client) as others:
            chord(numbers(others, parts), others.sig(TOTAL))()
            counting = Death(1000, executed=True)
            dies(own_server, client, monkeypatch, others, counting, Project.work)
            return counting.commands

    assert commands(30) - commands(20) == 10 * len(("transaction", "notify"))


def test_a_worker_that_dies_at_any_command_has_the_body_called_once(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = 0
    for others in deaths(own_server, client, monkeypatch, lambda others: chord(
        numbers(others, 2), others.sig(TOTAL))(), Project.work,
    ):
        others.work()
        assert others.bodies == [[0, 1]]
        died += 1
    assert died > 20


def test_a_worker_that_dies_at_any_command_has_the_errback_called_once(
    own_server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = 0
    for others in deaths(own_server, client, monkeypatch, lambda others: chord(
        [others.sig(FAILED), others.sig(ADD, 1)], others.sig(TOTAL).on_error(others.sig(ERRBACK)))(), Project.work,
    ):
        others.work()
        assert others.bodies == []
        assert others.errbacks == 1
        died += 1
    assert died > 20
