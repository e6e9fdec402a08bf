"""The checker accepts what subscribers truly received, and finds each small change (checker/received.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from msgspec.structs import replace

from tests.chaos.checker.received import judge_events, summary
from tests.chaos.histories.simulated import Knobs
from tests.chaos.histories.simulated_events import true_tale
from tests.chaos.workload.heard import Ear, Heard, Line, Span
from tests.chaos.workload.history import Record

SEEDS = 3
MUTANTS = 6                 # of each kind
KNOBS = Knobs(seconds=2.0)

known = cache(lambda seed: true_tale(seed, KNOBS))


def copy_of(heard: Heard) -> Heard:
    """Return a copy, for a mutant."""
    copied = Heard()
    copied.all_came_to_the_end, copied.messages = heard.all_came_to_the_end, dict(heard.messages)
    for name, ear in heard.ears.items():
        copied.ear(name).spans = [
            Span(span.after, span.again, span.newest, list(span.lines), span.begun_ns) for span in ear.spans
        ]
    return copied


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_wrong_in_what_was_truly_heard(seed: int) -> None:
    heard, records = known(seed)
    spans = [span for ear in heard.ears.values() for span in ear.spans]
    assert len(spans) > 3                                           # connections ended
    assert any(record.finished is not None for record in records)
    assert list(judge_events(heard, records)) == []


def test_the_tales_have_all_kinds_of_gaps() -> None:
    texts = [summary(*known(seed)) for seed in range(SEEDS)]
    assert any(" 0 gaps" not in text for text in texts), texts
    assert any(" 0 times gone on" not in text for text in texts), texts
    assert any(" 0 times told" not in text for text in texts), texts


# ---- mutants: each changes what was heard

Mutant = Callable[[Heard, Random], None]


def _events(span: Span, *types: bytes) -> list[int]:
    """Return the places of such events, except the ends of the sequence."""
    return [at for at, line in enumerate(span.lines[1:-1], 1)
            if isinstance(line, Line) and line.type != b"GAP" and (not types or line.type in types)]


def _some(heard: Heard, random: Random, *types: bytes) -> tuple[Ear, Span, int]:
    choices = [(ear, span, at) for ear in heard.ears.values() for span in ear.spans for at in _events(span, *types)]
    return random.choice(choices)


def _in_all(heard: Heard, change: Callable[[Line], list[Line]]) -> None:
    """Change what all subscribers received."""
    for ear in heard.ears.values():
        for span in ear.spans:
            span.lines = [new for line in span.lines for new in (
                [line] if isinstance(line, int) or line.type == b"GAP" else change(line))]


def miss(heard: Heard, random: Random) -> None:
    """Let one subscriber miss an event."""
    _, span, at = _some(heard, random)
    del span.lines[at]


def repeat(heard: Heard, random: Random) -> None:
    """Let one subscriber receive an event twice."""
    _, span, at = _some(heard, random)
    span.lines.insert(at, span.lines[at])


def exchange(heard: Heard, random: Random) -> None:
    """Two events arrive in the wrong order."""
    _, span, at = _some(heard, random)
    after = random.choice([other for other in _events(span) if other != at])
    span.lines[at], span.lines[after] = span.lines[after], span.lines[at]


def differ(heard: Heard, random: Random) -> None:
    """Let one node report something else than the others."""
    _, span, at = _some(heard, random)
    line = span.lines[at]
    assert isinstance(line, Line)
    span.lines[at] = replace(line, words=(b"else", *line.words[1:]))


def nobody_hears(heard: Heard, random: Random) -> None:
    """Lose an event everywhere: each subscriber resumes after it."""
    numbers = [line.number for span in heard.ears["n1"].spans for line in span.lines[1:-1] if isinstance(line, Line)]
    lost = random.choice(numbers)
    for ear in heard.ears.values():
        for span in list(ear.spans):
            at = next((at for at, line in enumerate(span.lines)
                       if isinstance(line, Line) and line.type != b"GAP" and line.number == lost), None)
            if at is not None:
                place = ear.spans.index(span)
                ear.spans.insert(place + 1, Span(lost, True, lost, span.lines[at + 1:], 0))
                span.lines = span.lines[:at]


def hide_end(heard: Heard, random: Random) -> None:
    """Make an end that an answer reported another event on all nodes."""
    _, span, at = _some(heard, random, b"FINQ")
    end = span.lines[at]
    assert isinstance(end, Line)
    _in_all(heard, lambda line: [replace(line, type=b"DEPTH") if line.number == end.number else line])


def invent_end(heard: Heard, random: Random) -> None:
    """Report a DONE that ended no queue as its end, on all nodes."""
    following = {line.number: line for ear in heard.ears.values() for span in ear.spans for line in span.lines
                 if isinstance(line, Line) and line.type != b"GAP"}
    dones = [line for line in following.values() if line.type == b"DONE" and following.get(line.number + 1, line).type
             not in (b"DONE", b"FINQ", b"FINI")]
    done = random.choice(dones)
    _in_all(heard, lambda line: [
        replace(line, type=b"FINQ", words=done.words[:1]) if line.number == done.number + 1 else line])


def end_twice(heard: Heard, random: Random) -> None:
    """Let an event on all nodes end a job that ends elsewhere too."""
    _, span, at = _some(heard, random, b"DONE")
    done = span.lines[at]
    assert isinstance(done, Line)
    _, other, place = _some(heard, random, b"PUT")
    put = other.lines[place]
    assert isinstance(put, Line)
    _in_all(heard, lambda line: [
        replace(line, type=b"DONE", words=done.words) if line.number == put.number else line])


def miss_message(heard: Heard, random: Random) -> None:
    """Lose an acknowledged message between two others, without a GAP."""
    spans = [span for ear in heard.ears.values() for span in ear.spans
             if sum(isinstance(line, int) for line in span.lines) > 2
             and not any(isinstance(line, Line) and line.type == b"GAP" for line in span.lines)]
    span = random.choice(spans)
    places = [at for at, line in enumerate(span.lines) if isinstance(line, int)]
    del span.lines[random.choice(places[1:-1])]


def exchange_messages(heard: Heard, random: Random) -> None:
    """Two messages arrive in the wrong order."""
    spans = [span for ear in heard.ears.values() for span in ear.spans
             if sum(isinstance(line, int) for line in span.lines) > 1]
    span = random.choice(spans)
    places = [at for at, line in enumerate(span.lines) if isinstance(line, int)]
    one, other = random.sample(places, 2)
    span.lines[one], span.lines[other] = span.lines[other], span.lines[one]


def hide_gap(heard: Heard, random: Random) -> None:
    """Delete the GAP that one subscriber received."""
    gaps = [(span, at) for ear in heard.ears.values() for span in ear.spans
            for at, line in enumerate(span.lines[:-1]) if isinstance(line, Line) and line.type == b"GAP"]
    if gaps:
        span, at = random.choice(gaps)
        del span.lines[at]
    else:
        miss(heard, random)


def not_all_come(heard: Heard, random: Random) -> None:
    """Withhold the last event from one subscriber."""
    heard.all_came_to_the_end = False


@pytest.mark.parametrize("mutant", [
    miss, repeat, exchange, differ, nobody_hears, hide_end, invent_end, end_twice, miss_message, exchange_messages,
    hide_gap, not_all_come,
], ids=lambda mutant: mutant.__name__)
def test_mutants_of_what_was_heard_are_found(mutant: Mutant) -> None:
    found = 0
    for seed in range(MUTANTS):
        heard, records = known(seed % SEEDS)
        changed = copy_of(heard)
        mutant(changed, Random(seed))
        found += bool(list(judge_events(changed, records)))
    # An end may be hidden whose answer was lost: nobody can know. Everything else is found every time.
    assert found >= (MUTANTS // 2 if mutant in (hide_end, invent_end) else MUTANTS)


def test_an_answer_that_tells_an_end_which_nobody_heard_is_found() -> None:
    heard, records = known(0)
    at = next(at for at, record in enumerate(records) if _ended_nothing(record))
    changed = list(records)
    finished = changed[at].finished
    assert finished is not None
    changed[at] = replace(changed[at], finished=replace(finished, item_done=True))
    assert list(judge_events(heard, changed)) != []


def _ended_nothing(record: Record) -> bool:
    return record.finished is not None and not record.finished.item_done
