"""Operations that bring something to a name of another cluster of the map are refused; what lies here is processed."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Aborted,
    Accepted,
    BadSetting,
    Batch,
    BindQueue,
    ConfigurePulse,
    ConfigureQueue,
    Done,
    Elsewhere,
    Empty,
    End,
    Finished,
    Get,
    Handed,
    HoldItem,
    How,
    Kick,
    Machine,
    MapChanged,
    Move,
    Moved,
    MoveJobs,
    OpenSession,
    Operation,
    PauseQueue,
    PulseChange,
    PulseNotFound,
    Put,
    PutWith,
    QueueChange,
    QueueNotFound,
    Removed,
    Reply,
    Request,
    Results,
    SetMap,
    Spread,
    Stored,
    ToQueues,
    ToTopic,
)
from tests.core.helpers.logs import CLUSTER, ask, lead, restored, snapshot_of

A = f"CLUSTER a {CLUSTER[:8].hex()} h:1\n"
MAP = f"{A}CLUSTER b {'00' * 8} h:2\nRULE away b\nRULE between -\nSPREAD away_too\n".encode()
AWAY = Elsewhere("b")

REFUSED: dict[str, Operation] = {
    "PUT": Put("away.x", 0, b"x"),
    "PUT with options": PutWith(Put("away.x", 0, b"x"), key="k"),
    "PUT to a dead-letter queue": Put("away.x_dead", 0, b"x"),
    "PUT to several": PutWith(Put("", 0, b"x"), targets=ToQueues(("here", "away"))),
    "PUT to a topic elsewhere": PutWith(Put("", 0, b"x"), targets=ToTopic("away", "k")),
    "PUT to a topic with a queue elsewhere": PutWith(Put("", 0, b"x"), targets=ToTopic("topic", "k")),
    "MOVE": Move(1, "away"),
    "QUEUE MOVE": MoveJobs("here", "away", 10),
    "TOPIC BIND of a queue": BindQueue("topic", "away"),
    "TOPIC BIND to a topic": BindQueue("away", "here"),
    "QUEUE CREATE": ConfigureQueue("away.new", QueueChange(), create=True),
    "QUEUE CONFIG": ConfigureQueue("away.new", QueueChange(limit=1)),
    "QUEUE CONFIG with a dead-letter queue": ConfigureQueue("here", QueueChange(tries=1, dead="away")),
    "QUEUE PAUSE": PauseQueue("away.new", True, True),
    "PULSE CREATE": ConfigurePulse("away.p", PulseChange(rate=1), create=True),
}


def machine_with_map() -> Machine:
    """Return a machine that is cluster a: a job runs here, one lies in `away`, to which also `topic` is bound."""
    machine = Machine()
    ask(
        machine, lead(), Put("here", 0, b"x"), Get(("here",)), Put("away", 0, b"y"), Put("here", 0, b"z"),
        BindQueue("topic", "away", "k"), BindQueue("topic", "here"),
    )
    assert ask(machine, SetMap(1, MAP)) == [Accepted()]
    return machine


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_brought_elsewhere_is_refused(name: str) -> None:
    machine = machine_with_map()
    before = snapshot_of(machine)
    assert ask(machine, REFUSED[name]) == [AWAY]
    machine_again = restored(before)
    ask(machine_again)
    assert snapshot_of(machine) == snapshot_of(machine_again)       # nothing has changed
    if isinstance(REFUSED[name], ConfigurePulse | ConfigureQueue | PauseQueue | BindQueue | MoveJobs):
        return
    assert ask(machine, Batch((Put("here", 0, b"x"), REFUSED[name]), atomic=True)) == [Aborted(2, AWAY)]


@pytest.mark.parametrize(("operation", "reply"), [
    (PauseQueue("away.new", False, False), QueueNotFound()),
    (ConfigurePulse("away.p", PulseChange(rate=1)), PulseNotFound()),
], ids=["QUEUE RESUME", "PULSE CONFIG"])
def test_what_creates_nothing_is_not_refused_for_its_name(operation: Operation, reply: Reply) -> None:
    assert ask(machine_with_map(), operation) == [reply]


def test_nobody_may_own_a_name_for_a_while() -> None:
    assert ask(machine_with_map(), Put("between", 0, b"x")) == [Elsewhere(None)]


def test_each_line_of_puts_has_its_own_answer() -> None:
    batch = Batch((Put("here", 0, b"x"), Put("away", 0, b"x"), Put("away_too", 0, b"x")), atomic=False)
    assert ask(machine_with_map(), batch) == [Results((Stored(), AWAY, Stored()))]


def test_what_lies_here_is_taken_ended_and_brought_back() -> None:
    machine = machine_with_map()
    ask(machine, SetMap(2, MAP + b"RULE here b\n"))
    handed, = ask(machine, Get(("away",)))
    assert isinstance(handed, Handed)
    ask(machine, End(handed.id, How.BURY))
    assert ask(machine, Kick("away", 1)) == [Removed(1)]
    handed, = ask(machine, Get(("away",)))
    assert isinstance(handed, Handed)
    assert ask(machine, Done(handed.id)) == [Finished(queue_done=True)]
    assert ask(machine, ConfigureQueue("here", QueueChange(limit=1)), PauseQueue("here", True, True)) == [
        Accepted(), Accepted(),         # the queue is there
    ]
    assert ask(machine, PutWith(Put("", 0, b"x"), targets=ToQueues(("away_too",)))) == [Spread(1)]


def test_the_hand_out_behind_a_refused_put_finds_nothing() -> None:
    machine = machine_with_map()
    ask(machine, Put("out", 0, b"x", "job"))
    put, wait = Put("away", 0, b"x", "job"), Get(("out",), item_of_put=True)
    assert ask(machine, Put("here", 0, b"x", "job"), put, wait) == [Stored(), AWAY, Empty(False)]


def test_a_queue_that_moves_to_another_cluster_meanwhile_ends_a_queue_move() -> None:
    machine = machine_with_map()
    assert ask(machine, MoveJobs("here", "away", 10, left=1)) == [Moved(0, refusal=AWAY)]


def test_an_answer_elsewhere_stays_the_answer_of_its_request() -> None:
    machine = machine_with_map()
    ask(machine, OpenSession(1, 1000))
    request = Request(1, 1, b"", 0, False, Put("away", 0, b"x"))
    assert ask(machine, request) == [AWAY]
    ask(machine, SetMap(2, A.encode()))
    copy = restored(snapshot_of(machine))
    assert ask(machine, request) == ask(copy, request) == [AWAY]
    assert ask(machine, Request(1, 2, b"", 0, False, Put("away", 0, b"x"))) == [Stored()]


def test_a_map_is_replaced_by_greater_versions_only() -> None:
    machine = machine_with_map()
    assert ask(machine, SetMap(1, MAP)) == [Accepted()]
    assert ask(machine, SetMap(1, A.encode()), SetMap(0, A.encode())) == [MapChanged(1), MapChanged(1)]
    assert ask(machine, SetMap(2, b"nonsense\n")) == [BadSetting()]
    assert machine.cluster_map is not None
    assert (machine.cluster_map.version, machine.cluster_map.text) == (1, MAP)


def test_what_stands_behind_a_new_map_is_proposed_again() -> None:
    """An entry is executed with one map: operations after the new one get no reply and come in the next entry."""
    machine = machine_with_map()
    assert ask(machine, SetMap(2, MAP + b"RULE here b\n"), Put("here", 0, b"x")) == [Accepted()]
    assert ask(machine, Put("here", 0, b"x")) == [AWAY]


def test_a_cluster_that_the_map_does_not_have_accepts_nothing() -> None:
    machine = machine_with_map()
    ask(machine, SetMap(2, f"CLUSTER b {'00' * 8} h:2\nRULE between -\nSPREAD away_too\n".encode()))
    assert ask(machine, Put("here", 0, b"x"), Put("between", 0, b"x"), Put("away_too", 0, b"x")) == [
        AWAY, Elsewhere(None), AWAY,
    ]


def test_names_of_new_items_end_with_that_of_the_cluster() -> None:
    machine = Machine()
    new = Put("here", 0, b"x", new_item=True)
    assert ask(machine, lead(), new) == [Accepted(), Stored("i1")]
    ask(machine, SetMap(1, MAP))
    assert ask(machine, Put("here", 0, b"x", item="i2.a"), new, HoldItem(None, 1000)) == [
        Stored(), Stored("i3.a"), Stored("i4.a")]
    assert ask(restored(snapshot_of(machine)), new) == [Stored("i5.a")]
    ask(machine, SetMap(2, MAP.replace(CLUSTER[:8].hex().encode(), b"11" * 8)))
    assert ask(machine, HoldItem(None, 1000)) == [Stored("i5")]
