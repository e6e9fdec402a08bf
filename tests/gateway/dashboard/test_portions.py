"""However much there is, a page holds the loop of its node for moments: what it does between two waits is counted.

A page is driven by hand from one suspension to the next, and the bytecode instructions in between are counted. That is
the same on every machine; 5 ms, which are promised, are some 100,000 instructions on a slow one.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Awaitable, Generator
from itertools import count
from types import FrameType
from typing import Any, cast

import pytest

from sockpqd.core import (
    BindQueue,
    ConfigureGroup,
    ConfigurePulse,
    Due,
    End,
    Get,
    How,
    PulseChange,
    Put,
    PutWith,
    SetMap,
)
from sockpqd.gateway.dashboard import site
from sockpqd.gateway.dashboard.figures import figures
from sockpqd.gateway.dashboard.forms import FORM_BYTES_MAX, fields_of
from sockpqd.gateway.dashboard.pages.parts.listing import ROWS
from sockpqd.gateway.dashboard.pages.parts.view import View
from sockpqd.gateway.dashboard.visitor import EVERYTHING, Visitor
from sockpqd.gateway.samples.flows import Flows
from sockpqd.gateway.samples.kept_queues import KEPT_MAX
from tests.gateway.helpers.dashboard import Site, run

STEPS_MAX = 45_000
QUEUES = 3000               # with more there are more turns, and none is longer


def steps(page: Awaitable[Any]) -> tuple[Any, list[int]]:
    """Return the result of a coroutine that waits for nothing but its turn, and the instructions of each of its turns.
    """
    counted = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    found: list[int] = []
    running = cast("Generator[None, None, Any]", page.__await__())
    while True:
        counted, before = 0, sys.gettrace()
        sys.settrace(trace)
        try:
            assert running.send(None) is None, "it waits for something else"
        except StopIteration as end:
            return end.value, found
        finally:
            sys.settrace(before)
            found.append(counted)


def filled(found: Site) -> View:
    """Return a node with very much of everything, and a visitor."""
    machine = found.cluster.machine
    body = b'{"a":[' + b"[1]," * 800 + b"0]}"
    operations: list[Any] = [Put(f"q{number:05}", number % 7, b"x" * 100) for number in range(QUEUES)]
    operations += [Put(f"q{number:05}", 0, b"x") for number in range(QUEUES - 10, QUEUES) for _ in range(20)]
    operations += [ConfigurePulse(f"p{number}", PulseChange(rate=10), create=True) for number in range(1000)]
    operations += [BindQueue(f"t{number}", "q00001", None) for number in range(1000)]
    operations += [BindQueue("wide", f"q{number:05}", None) for number in range(1000)]
    operations += [PutWith(Put("q00001", 0, bytes(200)), group=f"g{number}") for number in range(1000)]
    operations += [Put(f"q{number:05}", 0, b"x", f"i{number}") for number in range(1000)]
    operations += [Put(f"q{number:05}", 0, b"x", "large") for number in range(300)]
    operations += [PutWith(Put("q00001", 0, body, "large"), after=(f"i{number}",)) for number in range(60)]
    later = Due(delay_ms=86_400_000)
    operations += [PutWith(Put(f"q{number:05}", 0, b"x", "broad"), when=later) for number in range(QUEUES)]
    operations += [ConfigureGroup(f"g{number}", limit=number) for number in range(500, 1500)]
    operations += [PutWith(Put("bodies", 0, content), key=key) for key, content in (
        ("json", body), ("control", b"\x01" * 40_000), ("wide", "\u202e".encode() * 10_000),
        ("deep", b"[" * 900 + b"]" * 900),
    )]
    machine.apply(machine.index + 1, machine.clock_ms, 0, operations)
    taken = machine.next_id
    dying: list[Any] = []
    for number in range(2000):
        dying += [Put("dying", 0, b"x"), Get(("dying",)), End(taken + number, How.BURY, reason=f"r{number % 50}")]
    machine.apply(machine.index + 1, machine.clock_ms, 0, dying)
    own = (machine.cluster_id or b"")[:8].hex()
    text = f"CLUSTER c0 {own} h:1\n" + "".join(f"CLUSTER c{number} {number:016x} h:1\n" for number in range(1, 32))
    text += "".join(f"RULE t{number}. {f'c{number % 32}' if number % 100 else '-'}\n" for number in range(3000))
    machine.apply(machine.index + 1, machine.clock_ms, 0, [SetMap(1, text.encode())])
    samples = found.samples
    samples._clock = lambda: 1_800_000_000 // 600 * 600 + 590       # the ring of seconds does not begin again meanwhile
    for number in range(KEPT_MAX):
        samples.queue(f"q{QUEUES - 1 - number:05}")
    for course in samples.queues.courses.values():
        for ring in course.rings:               # each backlog grows
            ring.values = array("f", range(len(ring.values)))
            ring.newest = samples.now_s // ring.step_s
        course.first_s = 1
    return View(found.hub, Visitor(None, EVERYTHING, "here", True), {}, "token", "1", samples)


PAGES = (
    ("/queues", {"sort": "ready", "first": "2900"}), ("/queues", {"state": "waiting, and none runs", "sort": "oldest"}),
    ("/queue", {"name": "q00001"}), ("/queue", {"name": "dying"}), ("/queue", {"name": "dying_dead"}),
    ("/groups", {"sort": "waiting", "first": "500"}), ("/groups", {"name": "g7"}), ("/items", {"first": "500"}),
    ("/items", {"name": "i7"}), ("/items", {"name": "large"}),
    ("/items", {"name": "broad"}),
    ("/pulses", {}), ("/pulses", {"name": "p7"}), ("/topics", {}), ("/topics", {"name": "wide"}),
    ("/workers", {"cron": "q00001"}), ("/", {}), ("/cluster", {}), ("/dead", {}), ("/find", {"search": "q000"}),
    ("/sessions", {}), ("/users", {}), ("/slow", {}), ("/background", {}), ("/clusters", {}),
    *(("/job", {"queue": "bodies", "key": key, "form": form}) for key, form in (
        ("json", ""), ("json", "hex"), ("control", "text"), ("wide", "json"), ("deep", "json"))),
)


@pytest.fixture(scope="module")
def counted() -> dict[str, tuple[str, list[int]]]:
    """Return each page, and the instructions of its turns."""
    made: dict[str, tuple[str, list[int]]] = {}

    async def test(found: Site) -> None:
        view = filled(found)
        for path, words in PAGES:
            asked = View(view.hub, view.visitor, words, view.token, view.version, view.samples)
            made[f"{path} {words}"] = steps(site.PAGES[path](asked))
        made["a sample"] = "", steps(view.samples.sample())[1]
        made["figures"] = "", steps(figures(view.samples, view.visitor, {"of": "cluster", "span": "7d"}))[1]
        view.samples.flows = Flows(count().__next__)
        for pass_number in range(2):
            flows = steps(view.samples.flows.look(found.cluster.machine))[1]
            made[f"the flows, pass {pass_number}"] = "", flows

    run(test)
    return made


@pytest.mark.parametrize(
    "page", ["a sample", "figures", "the flows, pass 1", *(f"{path} {words}" for path, words in PAGES)])
def test_a_page_does_little_at_a_time(page: str, counted: dict[str, tuple[str, list[int]]]) -> None:
    assert max(counted[page][1]) < STEPS_MAX


def test_pages_of_lists_are_bounded(counted: dict[str, tuple[str, list[int]]]) -> None:
    page, turns = counted[f"/queues {PAGES[0][1]}"]
    assert f"{QUEUES + 3:,} queues" in page
    assert page.count("<tr>") == ROWS + 1
    assert "after →" in page
    assert "before" in page
    assert len(turns) > QUEUES // 250
    assert all(len(one) < 400_000 for one, _ in counted.values())


def test_very_many_names_that_match_are_never_sorted_at_once() -> None:
    """With a hundred thousand that took a tenth of a second."""
    async def test(found: Site) -> None:
        machine = found.cluster.machine
        machine.apply(machine.index + 1, machine.clock_ms, 0, [
            Put(f"q{number:05}", 0, b"") for number in range(2 * QUEUES)])
        view = View(found.hub, Visitor(None, EVERYTHING, "here", True), {"search": "q"}, "token", "1", found.samples)
        shown, turns = steps(site.PAGES["/find"](view))
        assert "All 6,000 in the table" in shown
        assert max(turns) < STEPS_MAX

    run(test)


def test_a_form_is_read_a_little_at_a_time() -> None:
    class Request:
        class content:      # noqa: N801
            @staticmethod
            async def iter_chunked(size: int) -> Any:
                yield b"body=" + b"%41" * ((FORM_BYTES_MAX - 5) // 3)

    fields, turns = steps(fields_of(Request()))       # type: ignore[arg-type]
    assert fields["body"] == "A" * ((FORM_BYTES_MAX - 5) // 3)
    assert max(turns) < STEPS_MAX


def test_what_is_counted_is_what_is_done_between_two_waits() -> None:
    async def page() -> str:
        total = sum(number for number in range(10_000))
        await asyncio.sleep(0)
        return str(total)

    _, (first, second) = steps(page())
    assert first > 30_000
    assert second < 100
