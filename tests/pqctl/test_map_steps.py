"""`pqctl map` killed at every step: run again it completes, and no name is ever accepted by two clusters.

The clusters are maps and counts of jobs in memory, judged by core's own reading of maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from sockpq import ClusterId, ClusterMap, MapChanged, QueueTotals
from sockpq.errors import Unavailable

from sockpqd.core import ClusterMap as ServedMap
from sockpqd.core import read_map
from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.actions.maps import change, clusters, moves
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, Failure
from sockpqd.pqctl.settings import Options

NAMES = ("mail", "video.", "video.in", "video.hd.x", "old.jobs", "every", "every2", "every_dead")
A, B, C = "aa" * 8, "bb" * 8, "cc" * 8


class Killed(BaseException):
    """The end of a pqctl by kill -9."""


class World:
    """Clusters in memory: of each its map and its jobs. `calls` of all are counted; the one numbered `last` kills."""

    def __init__(self) -> None:
        self.maps = {id_: ClusterMap() for id_ in (A, B, C)}
        self.jobs: dict[str, dict[str, int]] = {id_: {} for id_ in (A, B, C)}
        self.down: set[str] = set()
        self.calls = 0
        self.last: int | None = None
        self.after = False          # killed after the call was executed, not before
        self._read: dict[str, tuple[ClusterMap, ServedMap]] = {}      # what each cluster serves

    @contextmanager
    def step(self) -> Iterator[None]:
        self.calls += 1
        kills = self.calls == self.last
        if kills and not self.after:
            raise Killed
        yield
        self.judge()
        if kills:
            raise Killed

    def served(self, id_: str) -> ServedMap | None:
        held = self.maps[id_]
        if not held.version:
            return None
        known = self._read.get(id_)
        if known is None or known[0] is not held:
            known = held, read_map(held.version, held.text().encode(), bytes.fromhex(id_))
            self._read[id_] = known
        return known[1]

    def accepting(self, name: str) -> list[str]:
        """Return the clusters of a map that accept the name: by the law one at most, unless it is spread."""
        served = {id_: self.served(id_) for id_ in self.maps if id_ not in self.down}
        return [id_ for id_, one in served.items() if one is not None and one.accepts(name)]

    def judge(self) -> None:
        for name in NAMES:
            by = self.accepting(name)
            spread = any(name.removesuffix("_dead") in held.spread for held in self.maps.values())
            assert len(by) <= 1 or spread, (name, by, self.maps)

    def work(self) -> None:
        """Take a job as programs do: at the source of a MOVING before the owner."""
        home = self.maps[A]
        for prefix, moving in home.moving.items():
            jobs = self.jobs[home.clusters[moving.source].id]
            for queue in [queue for queue in jobs if queue.startswith(prefix)]:
                jobs[queue] -= 1
                if not jobs[queue]:
                    del jobs[queue]


class FakeClient:
    """A client of one cluster."""

    def __init__(self, world: World, id_: str) -> None:
        self._world, self._id = world, id_

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def cluster_id(self) -> ClusterId:
        if self._id in self._world.down:
            raise Unavailable("nobody answers")
        with self._world.step():
            return ClusterId(self._id, None)

    def cluster_map(self) -> ClusterMap:
        with self._world.step():
            return self._world.maps[self._id]

    def set_cluster_map(self, new: ClusterMap) -> None:
        with self._world.step():
            held = self._world.maps[self._id]
            if new != held and new.version <= held.version:
                raise MapChanged("409 Map Changed", version=held.version)
            read_map(new.version, new.text().encode(), bytes.fromhex(self._id))
            self._world.maps[self._id] = new

    def queues(self, prefix: str) -> list[QueueTotals]:
        with self._world.step():
            jobs = self._world.jobs[self._id]
            return [QueueTotals(name, ready, 0, 0, 0) for name, ready in jobs.items() if name.startswith(prefix)]


SERVERS = {"a:1": A, "b:1": B, "c:1": C, "localhost": A}       # the last one is that of Call.access


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(ClusterAccess, "client", lambda _, servers, *__: FakeClient(made, SERVERS[next(iter(servers))]))
    monkeypatch.setattr(clusters, "find", lambda call, several: Found(call))
    monkeypatch.setattr(clusters.Clusters, "members", lambda _: ("a:1",))
    monkeypatch.setattr(moves, "sleep", lambda _: made.work())
    return made


class Found:
    """The servers of a call."""

    def __init__(self, call: Call) -> None:
        self.addresses = call.servers


def of(server: str = "a:1") -> Call:
    return Call(Options(server, None, None, None, None), False, 5.0)


Command = Callable[[], int]


def run(world: World, command: Command) -> int:
    """Run a command to its end; returns the number of its calls."""
    world.calls, world.last = 0, None
    assert command() == DONE
    return world.calls


def build(world: World) -> None:
    """Return three clusters, with some names at b and jobs in a and c."""
    for command in (
        lambda: change.init(of(), "a"), lambda: change.add(of(), "b", "b:1"), lambda: change.add(of(), "c", "c:1"),
        lambda: moves.assign(of(), "video.", "b"), lambda: moves.assign(of(), "old.", "c"),
        lambda: moves.spread(of(), "every", True, None),
    ):
        run(world, command)
    world.jobs[B] = {"video.in": 3, "video.in_dead": 1, "every": 2}
    world.jobs[C] = {"every": 1}


COMMANDS: dict[str, Command] = {
    "move": lambda: moves.move(of(), "video.", "c", None),
    "move home": lambda: moves.move(of("b:1"), "video.", "a", None),
    "move a part": lambda: moves.move(of("c:1"), "video.hd.", "c", None),
    "assign": lambda: moves.assign(of(), "mail", "c"),
    "spread": lambda: moves.spread(of(), "mail", True, None),
    "no spread": lambda: moves.spread(of(), "every", False, None),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_step_it_completes_when_it_is_run_again(world: World, name: str, after: bool) -> None:
    build(world)
    start = world.maps.copy(), {id_: jobs.copy() for id_, jobs in world.jobs.items()}
    run(world, COMMANDS[name])
    wanted = {one: world.accepting(one) for one in NAMES}
    for last in count(1):
        world.maps, world.jobs = start[0].copy(), {id_: jobs.copy() for id_, jobs in start[1].items()}
        world.calls, world.last, world.after = 0, last, after
        try:
            COMMANDS[name]()
        except Killed:
            run(world, COMMANDS[name])
            assert {one: world.accepting(one) for one in NAMES} == wanted, last
            assert len({held.text() for held in world.maps.values()}) == 1
            assert not world.maps[A].moving
            assert None not in world.maps[A].rules.values()
        else:
            break
    assert last > 8             # there were steps to be killed at


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_cluster_is_added_and_removed_though_killed_at_any_step(world: World, after: bool) -> None:
    for command, wanted in (
        (lambda: change.init(of(), "a"), ["a"]), (lambda: change.add(of(), "b", "b:1"), ["a", "b"]),
        (lambda: change.add(of(), "c", "c:1"), ["a", "b", "c"]),
        (lambda: change.remove(of("b:1"), "b", False, True), ["a", "c"]),
    ):
        start = world.maps.copy()
        for last in count(1):
            world.maps = start.copy()
            world.calls, world.last, world.after = 0, last, after
            try:
                command()
            except Killed:
                run(world, command)
                assert list(world.maps[A].clusters) == wanted
                told = {held.text() for id_, held in world.maps.items() if held.version}
                assert len(told) == 1, (wanted, last, world.maps)
            else:
                break
    assert world.accepting("every") == [A]      # the removed cluster accepts nothing


def test_of_two_operators_the_second_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build(world)
    write = clusters.Clusters.change

    def slow(found: clusters.Clusters, after: ClusterMap) -> None:
        monkeypatch.setattr(clusters.Clusters, "change", write)
        run(world, lambda: moves.assign(of(), "first", "c"))
        write(found, after)

    monkeypatch.setattr(clusters.Clusters, "change", slow)
    with pytest.raises(Failure, match="changed meanwhile, a has version"):
        moves.assign(of(), "second", "c")
    assert "second" not in world.maps[A].rules
    run(world, lambda: moves.assign(of(), "second", "c"))
    assert {"first", "second"} <= set(world.maps[B].rules)


def test_a_cluster_that_does_not_answer_is_noticed_before_anything_is_changed(world: World) -> None:
    build(world)
    before = world.maps.copy()
    world.down.add(C)
    for command in (COMMANDS["assign"], COMMANDS["move home"], lambda: change.remove(of(), "b", False, True)):
        with pytest.raises(Failure, match="the cluster c does not answer"):
            command()
    assert world.maps == before


def test_a_lost_cluster_is_removed_with_its_names(world: World) -> None:
    build(world)
    world.down.add(B)
    run(world, lambda: change.remove(of(), "b", True, True))
    assert list(world.maps[C].clusters) == ["a", "c"]
    assert world.maps[A] == world.maps[C]
    assert world.accepting("video.in") == [A]
    run(world, lambda: change.remove(of(), "b", True, True))


def test_a_lost_home_is_followed_by_the_next_cluster(world: World) -> None:
    build(world)
    world.down.add(A)
    with pytest.raises(Failure, match="the cluster a does not answer"):
        moves.assign(of("c:1"), "mail", "c")
    run(world, lambda: change.remove(of("c:1"), "a", True, True))
    assert (world.maps[B].home, world.maps[B]) == ("b", world.maps[C])
    assert world.accepting("mail") == [B]
    assert world.accepting("old.jobs") == [C]
