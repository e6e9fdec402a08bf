"""Snapshots: the bytes, and what is not accepted as such."""

from __future__ import annotations

import gc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import (
    CloneChunk,
    Done,
    Get,
    JobTotals,
    Later,
    Machine,
    OpenSession,
    Put,
    Request,
    Return,
    SnapshotError,
    Then,
)
from sockpqd.core.limits import CHUNK_BYTES_MAX
from sockpqd.core.snapshot.read import OLDEST
from sockpqd.core.snapshot.write import FORMAT, MAGIC
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import (
    END,
    HEAD,
    RUNNING,
    WAITING,
    changed,
    running,
    waiting,
)
from tests.core.helpers.logs import LAW, ask, data_of, lead, play, random_log, restored, run, snapshot_of


@pytest.fixture
def small() -> bytes:
    """Return a snapshot with something of everything."""
    machine = Machine()
    run(machine, lead(), now_ms=1_700_000_000_000)
    ask(machine, OpenSession(5, 60_000), Request(1, 3, b"digest", 0, False, Done(9)))
    ask(machine, Put("q", 1, b"a", "x"), Put("q", -1, b"b"), Put("p", 0, b"c", None, True), Get(("q",), 500, session=1))
    ask(machine, CloneChunk(3, total_bytes=1000), CloneChunk(3, MAGIC), CloneChunk(3, b"\0\0\0\1"))
    return snapshot_of(machine)


@pytest.fixture
def machine() -> Machine:
    """Return a machine with some state to lose."""
    machine = Machine()
    run(machine, lead())
    ask(machine, Put("mine", 0, b""))
    return machine


def refuse(machine: Machine, snapshot: bytes, match: str = ".") -> None:
    """Assert that the snapshot is refused and the machine is unchanged."""
    before = snapshot_of(machine)
    with pytest.raises(SnapshotError, match=match):
        machine.restore([snapshot])
    assert snapshot_of(machine) == before


def test_restored_machine_has_everything(small: bytes) -> None:
    machine = restored(small)
    assert machine.index == 4
    assert machine.clock_ms == 1_700_000_000_000
    assert (machine.leader, machine.term, machine.cluster_id) == ("n1", 1, b"sixteen bytes id")
    assert machine.server_ids == {"n1": 1, "n2": 2, "n3": 3}
    assert machine.total(None) == JobTotals(2, 2, 2, 1)
    assert [(job.id, job.data, job.item, job.deadline_ms) for job in map(machine.running_job, machine.taken(1))
            if job is not None] == [
        (1, b"a", "x", 1_700_000_000_500)
    ]
    assert machine.ready_of_item("p", "i1") == 1
    assert snapshot_of(machine) == small


def test_snapshot_may_be_cut_anywhere(small: bytes) -> None:
    machine = Machine()
    machine.restore(small[at : at + 1] for at in range(len(small)))
    assert snapshot_of(machine) == small
    machine.restore([b"", small[:100], b"", small[100:], b""])
    assert snapshot_of(machine) == small


def test_equal_states_give_equal_bytes_whatever_led_to_them() -> None:
    one, two = Machine(), Machine()
    ask(one, *[Put("q", number % 2, b"%d" % number, "x") for number in range(1000)], *[Get(("q",), 50)] * 400)
    ask(one, *[Return(number) for number in Random(1).sample(range(1, 401), 400)])
    ask(two, *[Put("q", number % 2, b"%d" % number, "x") for number in range(1000)], *[Get(("q",), item="x")] * 400)
    ask(two, *[Return(number) for number in range(1, 401)])
    assert snapshot_of(one) == snapshot_of(two)


def test_snapshots_differ_when_the_order_of_jobs_does() -> None:
    one, two = Machine(), Machine()
    for machine, ending in ((one, Later(1)), (two, Return(1))):
        ask(machine, Put("q", 0, b""), Put("q", 0, b""), Get(("q",)), ending)
    assert snapshot_of(one) != snapshot_of(two)


def test_chunks_have_a_handy_size() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"x" * 1000)] * 3000, Put("q", 0, b"y" * 5_000_000), Get(("q",)))
    sizes = [len(chunk) for chunk in machine.snapshot()]
    assert sum(sizes) > 8_000_000
    assert all(size <= CHUNK_BYTES_MAX for size in sizes)
    assert len(sizes) < sum(sizes) / (64 << 10)
    copy = Machine()
    copy.restore(machine.snapshot())
    assert copy.total(None) == machine.total(None)


def test_large_state_is_restored_in_order() -> None:
    machine = Machine()
    ask(machine, *[Put("q", number % 5, b"%d" % number) for number in range(4000)], *[Get(("q",), 100)] * 1500)
    copy = restored(snapshot_of(machine))
    gets = [Get(("q",))] * 2500
    assert data_of(ask(copy, *gets)) == data_of(ask(machine, *gets))


def test_replaced_state_is_freed_without_the_garbage_collector(small: bytes, machine: Machine) -> None:
    freed: list[bytes] = []

    class Data(bytes):
        def __del__(self) -> None:
            freed.append(bytes(self))

    gc.disable()        # it never sees the jobs, so a cycle through them would stay for ever
    try:
        ask(machine, *[Put("q", 0, Data(b"%d" % number), "x") for number in range(1000)], *[Get(("q",), 50)] * 3)
        ask(machine, CloneChunk(1, total_bytes=len(small)), CloneChunk(1, small[:200]))
        machine.restore([small])
        assert len(freed) == 1000
    finally:
        gc.enable()


def test_every_truncation_is_refused(small: bytes, machine: Machine) -> None:
    for length in range(len(small)):
        refuse(machine, small[:length], "cut off")


def test_every_flipped_bit_is_refused(small: bytes, machine: Machine) -> None:
    for at in range(len(small)):
        for bit in range(8):
            refuse(machine, small[:at] + bytes([small[at] ^ (1 << bit)]) + small[at + 1 :])


def test_bytes_behind_the_end_are_refused(small: bytes, machine: Machine) -> None:
    refuse(machine, small + b"\0", "behind the end")
    refuse(machine, small + small, "behind the end")


@pytest.mark.parametrize("number", [FORMAT + 1, 2**32 - 1])
def test_unknown_format_is_refused_with_its_number_and_ours(machine: Machine, number: int) -> None:
    refuse(machine, forged(number=number), f"format {number}; this version reads formats {OLDEST} to {FORMAT}$")


@pytest.mark.parametrize("number", range(OLDEST))
def test_formats_before_the_first_release_are_refused_as_such(machine: Machine, number: int) -> None:
    snapshot = forged(HEAD, WAITING, RUNNING, END, number=number)
    never = f"format {number}, which no release ever wrote; this version reads formats {OLDEST} to {FORMAT}$"
    refuse(machine, snapshot, never)


@pytest.mark.parametrize("data", [b"", b"PQRAFT", b"\0" * 100, b"GET / HTTP/1.1\r\n\r\n", MAGIC * 10])
def test_other_bytes_are_refused(machine: Machine, data: bytes) -> None:
    refuse(machine, data)


def test_huge_length_of_a_frame_needs_no_memory(machine: Machine) -> None:
    refuse(machine, MAGIC + FORMAT.to_bytes(4, "big") + b"\xff\xff\xff\xff" + b"x" * 100, "cut off")


# --- well-made bytes with a wrong meaning

def test_forged_snapshot_is_right_as_it_stands() -> None:
    machine = restored(forged(HEAD, WAITING, RUNNING, END))
    assert machine.total(None) == JobTotals(2, 1, 2, 2)
    assert snapshot_of(machine) == forged(HEAD, WAITING, RUNNING, END)


@pytest.mark.parametrize(
    "frames",
    {
        "nothing": (),
        "no head": (WAITING, RUNNING, END),
        "head alone": (HEAD,),
        "two heads": (HEAD, HEAD, ["end", 0, 0]),
        "running before waiting": (HEAD, RUNNING, WAITING, END),
        "chunk without clone": (HEAD, ["chunk", b"x"], ["end", 0, 0]),
        "two clones": (HEAD, ["clone", 1, 10], ["clone", 2, 10], ["end", 0, 0]),
        "bad chunk": (HEAD, ["clone", 1, 100], ["chunk", b"this is no snapshot"], ["end", 0, 0]),
        "more chunks than announced": (HEAD, ["clone", 1, 3], ["chunk", b"PQRAFT"], ["end", 0, 0]),
        "frame behind the end": (HEAD, ["end", 0, 0], ["end", 0, 0]),
        "unknown frame": (HEAD, ["future"], ["end", 0, 0]),
        "map for a frame": ({"head": 1}, ["end", 0, 0]),
        "empty frame": (HEAD, b"", ["end", 0, 0]),
        "garbage frame": (HEAD, b"\xc1\xc1", ["end", 0, 0]),
        "frame with a tail": (HEAD, b"\x93\xa3end\x00\x00\x00"),
        "too many fields": ([*HEAD, 1], ["end", 0, 0]),
        "too few fields": (HEAD[:-3], ["end", 0, 0]),
        "string for a number": (changed(HEAD, 1, "9"), ["end", 0, 0]),
        "float for a number": (changed(HEAD, 1, 9.5), ["end", 0, 0]),
        "negative index": (changed(HEAD, 1, -1), ["end", 0, 0]),
        "counter past 63 bits": (changed(HEAD, 9, 2**63), ["end", 0, 0]),
        "next id zero": (changed(HEAD, 9, 0), ["end", 0, 0]),
        "next seq zero": (changed(HEAD, 10, 0), ["end", 0, 0]),
        "next item zero": (changed(HEAD, 11, 0), ["end", 0, 0]),
        "unknown expire default": (changed(HEAD, 6, 7), ["end", 0, 0]),
        "expire default DEFAULT": (changed(HEAD, 6, Then.DEFAULT.value), ["end", 0, 0]),
        "server ids equal": (changed(HEAD, 7, [["n1", 1], ["n2", 1]]), ["end", 0, 0]),
        "server ids fall": (changed(HEAD, 7, [["n1", 2], ["n2", 1]]), ["end", 0, 0]),
        "server twice": (changed(HEAD, 7, [["n1", 1], ["n1", 2]]), ["end", 0, 0]),
        "server id zero": (changed(HEAD, 7, [["n1", 0], ["n2", 1]]), ["end", 0, 0]),
        "server id past the greatest": (changed(HEAD, 8, 1), ["end", 0, 0]),
        "no members": (changed(HEAD, 12, []), ["end", 0, 0]),
        "fewer members than servers": (changed(HEAD, 12, [["n1", "", ""]]), ["end", 0, 0]),
        "member without a server id": (changed(HEAD, 12, [["n1", "", ""], ["n3", "", ""]]), ["end", 0, 0]),
        "members out of order": (changed(HEAD, 12, [["n2", "", ""], ["n1", "", ""]]), ["end", 0, 0]),
        "member twice": (changed(HEAD, 12, [["n1", "", ""], ["n1", "", ""], ["n2", "", ""]]), ["end", 0, 0]),
        "member without addresses": (changed(HEAD, 12, [["n1"], ["n2"]]), ["end", 0, 0]),
        "learner that is no member": (changed(HEAD, 13, "n3"), ["end", 0, 0]),
        "learner alone": ([*HEAD[:7], [["n1", 1]], 2, 10, 20, 5, [["n1", "", ""]], "n1", 0, True, 0], ["end", 0, 0]),
        "negative configuration": (changed(HEAD, 14, -1), ["end", 0, 0]),
        "online is no truth value": (changed(HEAD, 15, 1), ["end", 0, 0]),
        "jobs out of order": (HEAD, waiting([0, 4, None, b""], [0, 3, None, b""]), ["end", 2, 0]),
        "priorities out of order": (HEAD, waiting([0, 3, None, b""], [1, 4, None, b""]), ["end", 2, 0]),
        "same place twice": (HEAD, waiting([0, 3, None, b""], [0, 3, None, b""]), ["end", 2, 0]),
        "same place in two frames": (HEAD, waiting([0, 3, "x", b""]), waiting([0, 3, None, b""]), ["end", 2, 0]),
        "same seq in two priorities": (HEAD, waiting([1, 3, None, b""], [0, 3, None, b""]), ["end", 2, 0]),
        "queues out of order": (HEAD, waiting([0, 3, None, b""]), waiting([0, 4, None, b""], queue="p"), ["end", 2, 0]),
        "seq not yet given": (HEAD, waiting([0, 20, None, b""]), ["end", 1, 0]),
        "text for data": (HEAD, waiting([0, 3, None, "text"]), ["end", 1, 0]),
        "no data": (HEAD, waiting([0, 3, None, None]), ["end", 1, 0]),
        "number for a queue": (HEAD, waiting([0, 3, None, b""], queue=5), ["end", 1, 0]),
        "number for an item": (HEAD, waiting([0, 3, 5, b""]), ["end", 1, 0]),
        "name that is no text": (HEAD, b"\x93\xa7waiting\xa1\xff\x90", ["end", 0, 0]),
        "running at a place taken": (HEAD, WAITING, running(3, 3), ["end", 2, 1]),
        "id not yet given": (HEAD, running(0, 10), ["end", 0, 1]),
        "id zero": (HEAD, running(0, 0), ["end", 0, 1]),
        "same id twice": (HEAD, running(3, 1), running(3, 2), ["end", 0, 2]),
        "ids fall": (HEAD, running(0, 2), running(3, 2), ["end", 0, 2]),
        "negative deadline": (HEAD, running(6, -1), ["end", 0, 1]),
        "then DEFAULT": (HEAD, running(7, Then.DEFAULT.value), ["end", 0, 1]),
        "more progress than all": (HEAD, running(16, 101), ["end", 0, 1]),
        "graced is no truth value": (HEAD, running(8, 1), ["end", 0, 1]),
        "sum of waiting jobs": (HEAD, WAITING, RUNNING, ["end", 1, 2]),
        "sum of running jobs": (HEAD, WAITING, RUNNING, ["end", 2, 1]),
    }.items(),
    ids=lambda case: case[0],
)
def test_inconsistent_snapshot_is_refused(machine: Machine, frames: tuple[str, tuple[object, ...]]) -> None:
    refuse(machine, forged(*frames[1]))


@settings(LAW, max_examples=300)
@given(st.data())
def test_random_frames_are_refused_or_make_a_sound_machine(data: st.DataObject) -> None:
    base = [HEAD, WAITING, RUNNING, END]
    odd: st.SearchStrategy[object] = st.sampled_from(
        [None, -1, 0, 1, 2, 3, 4, 2**63 - 1, 2**63, 2**64 - 1, "", "q", "x", b"", True, [], 1.5]
    )
    number = data.draw(st.integers(0, 3))
    frame = base[number]
    if number in (1, 2) and data.draw(st.booleans()):
        rows = frame[-1]
        at = data.draw(st.integers(0, 1))
        row = changed(rows[at], data.draw(st.integers(0, len(rows[at]) - 1)), data.draw(odd))
        frame = changed(frame, len(frame) - 1, changed(rows, at, row))
    else:
        frame = changed(frame, data.draw(st.integers(1, len(frame) - 1)), data.draw(odd))
    snapshot = forged(*base[:number], frame, *base[number + 1 :])
    machine = Machine()
    try:
        machine.restore([snapshot])
    except SnapshotError:
        assert snapshot_of(machine) == snapshot_of(Machine())
        return
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    for _ in play(machine, random_log(1, 30)):
        pass
    ask(machine, *[Later(number) for number in range(5)], *[Get(None)] * 10, now_ms=2**63)


@settings(LAW, max_examples=300)
@given(st.lists(st.binary(max_size=40), max_size=4), st.booleans())
def test_random_bytes_are_refused(bodies: list[bytes], headed: bool) -> None:
    with pytest.raises(SnapshotError):
        Machine().restore([forged(*([HEAD] if headed else []), *bodies)])
