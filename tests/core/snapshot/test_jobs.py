"""Settings, times, keys and attempts in snapshots, and what of them is not accepted."""

from __future__ import annotations

from typing import Any

import pytest

from sockpqd.core import (
    ERROR_BYTES_MAX,
    Batch,
    ClusterSettings,
    Configure,
    ConfigureQueue,
    Delete,
    Done,
    Due,
    End,
    EndState,
    Get,
    GetWith,
    How,
    JobState,
    Kick,
    Machine,
    Move,
    Number,
    OnDup,
    OpenSession,
    Operation,
    Order,
    Overflow,
    PauseQueue,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Reply,
    Request,
    Requested,
    Selector,
    Then,
    Tick,
    Touch,
)
from sockpqd.core.snapshot.frames import ExtrasRow
from sockpqd.core.store.job import Extras
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import HEAD, RUNNING, WAITING, changed
from tests.core.helpers.logs import ask, lead, play, restored, run, snapshot_of
from tests.core.helpers.session_logs import DIGESTS
from tests.core.helpers.time_logs import random_time_log
from tests.core.snapshot.test_snapshot import refuse

NEVER_MS = 2**63 - 1

SETTINGS: list[Any] = ["settings", False, Policy.PRIORITY.value, 5000, None, True, 4096]
QUEUE: list[Any] = [
    "q", 60_000, Then.DEAD.value, Order.FIFO.value, 3, "graves", 1, 10, 1, 0, 0, 5, 1000, 50, False, True,
    70, 80, Overflow.DROPOLDEST.value, 0, 0, False, "ga", 0, 5000, 9000, False, 500, 60_000, 2**63 - 1, 20,
    3_600_000, 50, 2048, True, 0, 0, 0, 0, "", False,
]
PULSES: list[Any] = ["pulses", 8, 1]
# name, settings (together, payload and deny, too), present speed, counters, period of the law, window, tickets, spread
PULSE: list[Any] = [
    "pulse", "ga", 10, 1000, 500, 300_000, 7000, True, 7000, b"hi", True, 9, 0, 2000, 30, 2, 1900, True, False,
    [[800, 3], [900, 2]], [[5, 7800], [7, 7900]], False,
]
QUEUES: list[Any] = ["queues", [QUEUE, ["r", *QUEUE[1:]]]]
# key, tries, ttl_ms, expires_at_ms, every_ms, origin, after, ready_ms, reason, group, body, lease_ms, counts, head,
# error, until
DELAYED: list[Any] = [
    "delayed",
    "q",
    [
        [
            5000, 6, 0, None, b"e", 0, 5000,
            ["k", 2, 10, None, 60, None, [], None, "why", None, 3, 7000, [1, 2, 3, 4, 5, 6, 7, 800, 900, 0], 1, 8,
             0],
        ],
        [NEVER_MS, 5, 0, None, b"f", 0, None, [*[None] * 6, ["x", "y"], *[None] * 6, 0, 9, 2]],
    ],
]
# name, done; hold: ends_ms, length_ms, then, graced; owner
#   cancelled: now, reason, counts as that when it ends, jobs removed
ITEMS: list[Any] = ["items", [
    ["made", 0, 1500, 600, 1, True, "ann", False, None, True, 2],
    ["x", 3, 0, 0, 0, False, None, True, "late", False, 1],
]]
RELEASED: list[Any] = ["released", "y", [5], False, 2, 1]
ERRORS: list[Any] = ["errors", [[8, b"why"]]]        # that of 9 was dropped
BINDINGS: list[Any] = ["bindings", [["t", "s", None], ["t", "q", "a.#"], ["u", "q", "*"]]]
USED: list[Any] = ["used", [["q", 900], ["r", 950]]]
KEPT: list[Any] = ["kept", [["q", "old", 1040], ["r", "old", 1050]]]
REMEMBERED: list[Any] = ["remembered", [["q", "old", 1040, 3], ["r", "old", 1050, 0]]]
# number, state, ended_ms, priority, item, data, attempts, extras, result, error
RECORD: list[Any] = [
    2, EndState.DONE.value, 900, 7, "x", b"hb", 1,
    ["k", *[None] * 5, [], *[None] * 5, [1, 2, 3, 4, 5, 6, 7, 800, 900, 2], 1, None, 0],
    b"result", b"why",
]
RECORDS: list[Any] = ["records", "q", [RECORD]]
BURIED: list[Any] = ["buried", "q", [[3, 7, 0, None, b"b", 1, None, None]]]
END: list[Any] = ["end", 4, 2, 2, 1]
ALL = [
    HEAD, SETTINGS, PULSES, PULSE, QUEUES, WAITING, DELAYED, BURIED, RUNNING, ITEMS, RELEASED, ERRORS, BINDINGS, USED,
    KEPT, REMEMBERED, RECORDS, END,
]


@pytest.fixture
def machine() -> Machine:
    """Return a machine with some state to lose."""
    machine = Machine()
    run(machine, lead())
    ask(machine, PutWith(Put("mine", 0, b""), Due(50), key="k"), PauseQueue("mine", True, False))
    return machine


def instead(frame: list[Any], *others: list[Any]) -> list[list[Any]]:
    """Return all frames, with others in place of the ones of the same name."""
    return [one for known in ALL for one in (others if known[0] == frame[0] else [known])]


def delayed(at: int, value: object, row: int = 0) -> list[Any]:
    """Return a frame of delayed jobs, one of which has another value at one place."""
    return changed(DELAYED, 2, changed(DELAYED[2], row, changed(DELAYED[2][row], at, value)))


def rare(at: int, value: object, row: int = 0) -> list[Any]:
    """Return the same with another value among the rare fields."""
    return delayed(7, changed(DELAYED[2][row][7], at, value), row)


def ready(more: list[Any], at_ms: int | None = None) -> list[Any]:
    """Return a frame of waiting jobs, the second of which has this."""
    return changed(WAITING, 2, [WAITING[2][0], [0, 0, 4, "x", b"b", 0, at_ms, more]])


def queue(at: int, value: object) -> list[Any]:
    """Return a frame with the settings of a queue, one of which is changed."""
    return ["queues", [changed(QUEUE, at, value)]]


def test_forged_snapshot_is_right_as_it_stands() -> None:
    machine = restored(forged(*ALL))
    assert snapshot_of(machine) == forged(*ALL)
    assert machine.settings == ClusterSettings(Then.LATER, False, Policy.PRIORITY, 5000, None, True, 4096)
    settings = machine.queue_settings("q")
    assert settings is not None
    assert (settings.expire_ms, settings.then, settings.dead) == (60_000, Then.DEAD, "graves")
    assert (settings.limit, settings.paused_in, settings.paused_out) == (10, False, True)
    assert [job.data for job in machine.peek_queue("q", JobState.DELAYED, 9)] == [b"e", b"f"]
    found = machine.peek(Selector(queue="q", key="k"))
    assert found is not None
    assert (found.data, found.at_ms, found.state) == (b"e", 5000, JobState.DELAYED)
    assert (found.headers(), found.body()) == (b"e", b"")
    assert machine.error(Selector(queue="q", key="k")) == b"why"
    assert machine.error_bytes("q") == 3
    ended = machine.ended(2)
    assert ended is not None
    assert (ended.state, ended.ended_ms, ended.item, ended.headers(), ended.body()) == (
        EndState.DONE, 900, "x", b"h", b"b")
    assert (machine.result(2), machine.error(Number(2)), machine.retained("q")) == (b"result", b"why", (1, 11))


@pytest.mark.parametrize(
    "frames",
    {
        "settings twice": instead(SETTINGS, SETTINGS, SETTINGS),
        "settings behind queues": [HEAD, QUEUES, SETTINGS, *ALL[3:]],
        "unknown policy": instead(SETTINGS, changed(SETTINGS, 2, 99)),
        "negative grace": instead(SETTINGS, changed(SETTINGS, 3, -1)),
        "autocreate is no truth value": instead(SETTINGS, changed(SETTINGS, 1, 1)),
        "queues out of order": instead(QUEUES, ["queues", [QUEUES[1][1], QUEUES[1][0]]]),
        "bound to no session": instead(QUEUES, ["queues", [[*QUEUE[:19], 7, *QUEUE[20:]], QUEUES[1][1]]]),
        "topics out of order": instead(BINDINGS, ["bindings", [["u", "q", None], ["t", "q", None]]]),
        "bound twice": instead(BINDINGS, ["bindings", [["t", "q", None], ["t", "q", None]]]),
        "pattern of other characters": instead(BINDINGS, ["bindings", [["t", "q", "a b"]]]),
        "headers longer than the data": instead(DELAYED, rare(13, 2)),
        "negative headers": instead(DELAYED, rare(13, -1)),
        "text of no job": instead(ERRORS, ["errors", [[7, b"why"], [8, b"why"]]]),
        "texts out of order": instead(ERRORS, ["errors", [[9, b"why"], [8, b"why"]]]),
        "text twice": instead(ERRORS, ["errors", [[8, b"why"], [8, b"why"]]]),
        "empty text": instead(ERRORS, ["errors", [[8, b""]]]),
        "text too long": instead(ERRORS, ["errors", [[8, bytes(ERROR_BYTES_MAX + 1)]]]),
        "text of two jobs": instead(DELAYED, rare(14, 8, row=1)),
        "number of a text out of range": instead(DELAYED, rare(14, 20, row=1)),
        "texts before jobs": instead(BURIED, ERRORS, BURIED),
        "last hand-out before the first": instead(DELAYED, rare(12, [1, 2, 3, 4, 5, 6, 7, 901, 900, 1])),
        "first hand-out without a last one": instead(DELAYED, rare(12, [1, 2, 3, 4, 5, 6, 7, 800, None, 1])),
        "number of its present place": instead(DELAYED, rare(12, [1, 2, 3, 4, 5, 6, 7, 800, 900, 6])),
        "number of a later place": instead(DELAYED, rare(12, [1, 2, 3, 4, 5, 6, 7, 800, 900, 8])),
        "number of another job's place": instead(DELAYED, rare(12, [1, 2, 3, 4, 5, 6, 7, 800, 900, 3])),
        "shared body out of range": instead(DELAYED, rare(10, 20)),
        "shared body missing": instead(DELAYED, changed(DELAYED, 2, [
            changed(DELAYED[2][0], 4, b""), DELAYED[2][1],
        ])),
        "last uses out of order": instead(USED, ["used", [["r", 900], ["q", 950]]]),
        "last use twice": instead(USED, ["used", [["q", 900], ["q", 950]]]),
        "last use of a queue without IDLE": instead(USED, ["used", [["never", 900]]]),
        "queue twice": instead(QUEUES, ["queues", [QUEUE, QUEUE]]),
        "queue twice in two frames": instead(QUEUES, ["queues", [QUEUE]], ["queues", [QUEUE]]),
        "settings without a name": instead(QUEUES, queue(0, "")),
        "negative limit": instead(QUEUES, queue(7, -1)),
        "unknown order": instead(QUEUES, queue(3, 9)),
        "groups by items, in a queue that does not choose by groups": instead(QUEUES, queue(35, 3)),
        "a header that decides nothing": instead(QUEUES, queue(36, "h")),
        "portion zero": instead(QUEUES, queue(12, 0)),
        "weight zero": instead(QUEUES, queue(6, 0)),
        "paused is no truth value": instead(QUEUES, queue(14, 1)),
        "delayed before waiting": [HEAD, SETTINGS, QUEUES, DELAYED, WAITING, *ALL[5:]],
        "delayed out of order": instead(DELAYED, changed(DELAYED, 2, [DELAYED[2][1], DELAYED[2][0]])),
        "delayed without reason": instead(DELAYED, delayed(0, NEVER_MS)),
        "delayed for a time and for items": instead(DELAYED, delayed(0, 5001, row=1)),
        "seq of two jobs": instead(DELAYED, delayed(1, 4)),
        "seq not yet given": instead(DELAYED, delayed(1, 20)),
        "key of two jobs": instead(DELAYED, rare(0, "k", row=1)),
        "text for attempts": instead(DELAYED, delayed(5, "0")),
        "negative attempts": instead(DELAYED, delayed(5, -1)),
        "every zero": instead(DELAYED, rare(4, 0)),
        "periodic without a time": instead(DELAYED, delayed(6, None)),
        "fading while delayed": instead(DELAYED, rare(3, 10)),
        "waits twice for an item": instead(DELAYED, rare(6, ["x", "x"], row=1)),
        "waits for an item that is not there": instead(DELAYED, rare(6, ["z", "y"], row=1)),
        "too few rare fields": instead(DELAYED, delayed(7, ["k"])),
        "waiting job that waits for items": instead(WAITING, ready([None, None, None, None, None, None, ["x"]])),
        "end without a TTL": instead(WAITING, ready([None, None, None, 10, None, None, []])),
        "key of a waiting and a delayed job": instead(WAITING, ready(["k", None, None, None, None, None, []])),
        "a pulse too few": instead(PULSE),
        "pulses of nothing": instead(PULSES),
        "a rate of nothing": instead(PULSE, changed(PULSE, 2, 0)),
        "faster than its rate": instead(PULSE, changed(PULSE, 11, 11)),
        "a period of nothing": instead(PULSE, changed(PULSE, 3, 0)),
        "results outside of a period": instead(PULSE, changed(PULSE, 16, 0)),
        "grants out of order": instead(PULSE, changed(PULSE, 19, [[900, 3], [800, 2]])),
        "tickets out of order": instead(PULSE, changed(PULSE, 20, [[7, 7800], [5, 7900]])),
        "a ticket not yet given": instead(PULSE, changed(PULSE, 20, [[8, 7800]])),
        "the pulse of a queue that is not there": instead(PULSE, changed(PULSE, 1, "queue:none")),
        "a queue with a pulse that is not there": instead(PULSE, changed(PULSE, 1, "gb")),
        "running without an attempt": instead(RUNNING, ["running", [changed(RUNNING[1][0], 10, 0), RUNNING[1][1]]]),
        "released job that is not there": instead(RELEASED, ["released", "y", [7], False, 2, 1]),
        "released job that did not wait": instead(RELEASED, ["released", "y", [6], False, 2, 1]),
        "released from another item": instead(RELEASED, ["released", "z", [5], False, 2, 1]),
        "released twice": instead(RELEASED, ["released", "y", [5, 5], False, 2, 1]),
        "nothing released": instead(RELEASED, ["released", "y", [], False, 2, 1]),
        "released, cut off": instead(RELEASED, ["released", "y", [5], True, 2, 1]),
        "released for another moment": instead(RELEASED, ["released", "y", [5], False, 1, 0]),
        "decided what is not asked": instead(RELEASED, ["released", "y", [5], False, 2, 0]),
        "item without jobs": instead(ITEMS, ["items", [["w", 3]]]),
        "item of which nothing is known": instead(ITEMS, ["items", [["x", 0]]]),
        "items out of order": instead(ITEMS, ["items", [["x", 3], ["x", 3]]]),
        "nobody released from an item that is not there": instead(RELEASED),
        "key remembered twice": instead(KEPT, ["kept", [["q", "old", 1040], ["q", "old", 1050]]]),
        "key remembered for ever": instead(KEPT, ["kept", [["q", "old", None]]]),
        "key of DEDUP twice": instead(REMEMBERED, ["remembered", [["q", "old", 1040, 0], ["q", "old", 1050, 0]]]),
        "key of DEDUP for ever": instead(REMEMBERED, ["remembered", [["q", "old", 0, 0]]]),
        "number of a job to come": instead(REMEMBERED, ["remembered", [["q", "old", 1040, 20]]]),
        "kept before released": [*ALL[:6], KEPT, RELEASED, END],
        "sum of waiting jobs": instead(END, ["end", 2, 2, 2, 1]),
        "sum of delayed jobs": instead(END, ["end", 4, 2, 1, 1]),
        "delayed jobs not counted": instead(END, ["end", 4, 2]),
        "buried jobs not counted": instead(END, ["end", 4, 2, 2]),
        "burial to come": instead(BURIED, ["buried", "q", [[10**9, 7, 0, None, b"b", 1, None, None]]]),
        "two burials with one number": instead(
            BURIED, ["buried", "q", [[3, 7, 0, None, b"b", 1, None, None], [3, 8, 0, None, b"c", 1, None, None]]]),
        "burials of two queues with one number": instead(
            BURIED, ["buried", "q", [[3, 7, 0, None, b"b", 1, None, None]]],
            ["buried", "r", [[3, 8, 0, None, b"c", 1, None, None]]], ),
    }.items(),
    ids=lambda case: case[0],
)
def test_inconsistent_snapshot_is_refused(machine: Machine, frames: tuple[str, list[list[Any]]]) -> None:
    refuse(machine, forged(*frames[1]))


def everything() -> list[Operation]:
    """Return what makes each kind of answer, in a session."""
    asked: list[Requested] = [
        PutWith(Put("q", 0, b"1"), key="k"),
        PutWith(Put("q", 0, b"1"), key="k"),
        PutWith(Put("q", 0, b"1"), key="k", on_dup=OnDup.IGNORE),
        PutWith(Put("q", 1, b"1"), key="k", on_dup=OnDup.REPLACE),
        PutWith(Put("q", 0, b"2", "x"), every_ms=100),
        Batch((Put("q", 0, b"3", None, True), Done(99)), atomic=False),
        Batch((Put("q", 0, b"4"), Done(99)), atomic=True),
        GetWith(Get(("q",), 50_000), 2, meta=True),
        GetWith(Get(("q",), 50_000)),
        PutWith(Put("q", 0, b"1"), key="k", on_dup=OnDup.REPLACE),
        Touch(1, 70_000),
        Touch(3, 0),
        Done(2),
        End(3, How.DONE, last=True),
        End((98, 99), How.DONE),
        Kick("q", 3),
        PurgeQueue("q", Purged.ALL),
        PurgeQueue("unknown", Purged.ALL),
        Configure(session_ttl_ms=5000),
        PauseQueue("q", True, False),
        Put("q", 0, b""),
        End(77, How.BURY),
        Move(77, "q"),
        End(77, How.LATER, first=True),
        Delete(Selector(queue="q", key="none")),
        GetWith(Get(("nothing",)), 5),
    ]
    return [Request(1, number, DIGESTS[0], 0, False, one) for number, one in enumerate(asked, start=1)]


def test_a_ttl_without_an_end_is_read_as_1_0_0rc1_wrote_it() -> None:
    """On all nodes alike, whichever snapshot each has: the job has no end, instead of one that counts from a start."""
    machine = restored(forged(*instead(WAITING, ready([None, None, 10, None, None, None, []]))))
    before = places_of(machine)
    run(machine, Tick(), now_ms=machine.clock_ms + 100)         # the TTL is 10 ms
    assert before <= places_of(machine) == places_of(restored(snapshot_of(machine)))


def places_of(machine: Machine) -> set[int]:
    """Return the places of READY jobs."""
    return {job.seq for name in machine.queue_names("") for job in machine.peek_queue(name, JobState.READY, 99)}


def test_every_answer_is_given_again_after_a_restart() -> None:
    machine = Machine()
    run(machine, lead(), OpenSession(1, 60_000), now_ms=1000)
    first = ask(machine, *everything())
    assert len({type(reply) for reply in first}) >= 15
    again = restored(snapshot_of(machine))
    assert snapshot_of(again) == snapshot_of(machine)
    assert ask(again, *everything()) == ask(machine, *everything())
    repeated = ask(again, *everything())
    lost: list[Reply] = [one for one, other in zip(first, repeated, strict=True) if one != other]
    assert [type(reply).__name__ for reply in lost] == ["HandedMany", "Handed"]     # jobs that do not run any more


def test_queues_and_their_settings_are_restored_from_several_frames() -> None:
    machine = Machine()
    run(machine, *[ConfigureQueue(f"q{number}", QueueChange(limit=number)) for number in range(500)])
    copy = restored(snapshot_of(machine))
    assert [copy.queue_settings(f"q{number}") for number in range(500)] == [
        machine.queue_settings(f"q{number}") for number in range(500)
    ]
    assert snapshot_of(copy) == snapshot_of(machine)


def test_export_of_a_long_log_can_be_cloned() -> None:
    machine = Machine()
    for _ in play(machine, random_time_log(5, 300)):
        pass
    assert b"".join(machine.export()) == snapshot_of(machine)       # there are no users
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)


def test_a_row_has_all_extras_of_a_job_in_their_order() -> None:
    assert ExtrasRow.__struct_fields__ == Extras.__struct_fields__


@pytest.mark.parametrize("record", [
    changed(RECORD, 0, 20), changed(RECORD, 1, JobState.RUNNING.value), changed(RECORD, 7, [None] * 6 + [[]]),
    changed(RECORD, 7, changed(RECORD[7], 13, 3)),
    changed(RECORD, 7, changed(RECORD[7], 12, [1, 2, 3, 4, 5, 6, 7, 800, 900, 1])),
])
def test_wrong_records_are_refused(machine: Machine, record: list[Any]) -> None:
    refuse(machine, forged(*instead(RECORDS, ["records", "q", [record]])))


def test_records_stand_in_their_order_and_in_queues_with_settings(machine: Machine) -> None:
    refuse(machine, forged(*instead(RECORDS, ["records", "q", [RECORD, changed(changed(RECORD, 0, 1), 2, 899)]])))
    refuse(machine, forged(*instead(RECORDS, ["records", "q", [RECORD, RECORD]])))
    refuse(machine, forged(*instead(RECORDS, ["records", "r", [RECORD]], ["records", "q", [changed(RECORD, 0, 1)]])))
    refuse(machine, forged(*instead(RECORDS, ["records", "s", [RECORD]])))
