"""Checks that events are one complete sequence on all nodes, and that messages are lost only where a GAP says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.chaos.checker.violation import Violation
from tests.chaos.workload.heard import Ear, Heard, Line, Span
from tests.chaos.workload.history import Done, Outcome, Record


def judge_events(heard: Heard, records: Sequence[Record]) -> Iterator[Violation]:
    """Compare the events that subscribers received with each other and with the answers to DONE."""
    tale: dict[int, Line] = {}
    for ear in heard.ears.values():
        for span in ear.spans:
            yield from _in_order(ear, span)
            yield from _messages(ear, span, heard.messages)
            for line in _events(span):
                before = tale.setdefault(line.number, line)
                if (before.type, before.words) != (line.type, line.words):
                    yield _broken(f"{ear.name} heard {_text(line)}, another {_text(before)}")
    yield from _complete(heard, tale)
    yield from _ends(tale, records)
    if not heard.all_came_to_the_end:
        places = {ear.name: (ear.position, ear.last_message) for ear in heard.ears.values() if ear.spans}
        yield _broken(f"they did not all come to the end: {places}")


def _broken(text: str) -> Violation:
    return Violation("events", text, ())


def _events(span: Span) -> Iterator[Line]:
    return (line for line in span.lines if isinstance(line, Line) and line.type != b"GAP")


def _text(line: Line) -> str:
    return b" ".join((b"%d" % line.number, line.type, *line.words)).decode()


def _lost_messages(line: Line, position: int) -> bool:
    """Return whether a GAP stands for lost messages: its number is not new."""
    return line.type == b"GAP" and line.first == line.number <= position


def _in_order(ear: Ear, span: Span) -> Iterator[Violation]:
    """Check that each number follows the one before; a GAP names all that are left out."""
    position = span.after
    for line in span.lines:
        if isinstance(line, int) or _lost_messages(line, position):
            continue
        if line.first != position + 1:
            yield _broken(f"{ear.name} heard {_text(line)} behind {position}")
        position = max(line.number, position)


def _messages(ear: Ear, span: Span, said: dict[int, int]) -> Iterator[Violation]:
    """Check that messages come in order, and that no acknowledged one is missing between two of them without a GAP."""
    last: int | None = None
    position, gap = span.after, False
    for line in span.lines:
        if isinstance(line, Line):
            gap = gap or line.type == b"GAP"
            position = max(line.number, position)
            continue
        if last is not None:
            missing = [number for number in range(last + 1, line) if number in said]
            if line <= last:
                yield _broken(f"{ear.name} heard message {line} behind {last}")
            elif missing and not gap:
                yield _broken(f"{ear.name} heard message {line} behind {last}, and was not told of a gap")
        last, gap = line, False


def _complete(heard: Heard, tale: dict[int, Line]) -> Iterator[Violation]:
    """Find events that no subscriber received, unless all of them got a GAP."""
    first = min((span.after for ear in heard.ears.values() for span in ear.spans[:1]), default=0)
    last = max(tale, default=first)
    for number in range(first + 1, last + 1):
        if number not in tale and not all(_told_missing(ear, number) for ear in heard.ears.values()):
            yield _broken(f"nobody heard event {number}, and not all were told")
            return


def _told_missing(ear: Ear, number: int) -> bool:
    """Return whether the subscriber began after the number, or a GAP named it."""
    before = -1
    for span in ear.spans:
        if not span.again and before < number <= span.after:
            return True
        if any(isinstance(line, Line) and line.type == b"GAP" and line.first <= number <= line.number
               for line in span.lines):
            return True
        before = max([span.after, *(line.number for line in _events(span))])
    return number > before


def _ends(tale: dict[int, Line], records: Iterable[Record]) -> Iterator[Violation]:
    """Check that a DONE answered FINQ or FINI is followed by these events, and no other DONE is."""
    done = {int(line.words[2]): line for line in tale.values() if line.type == b"DONE"}
    seen = sum(line.type == b"DONE" for line in tale.values())
    if seen != len(done):
        yield _broken(f"{seen} events tell of the end of {len(done)} jobs")
    for record in records:
        if record.outcome is not Outcome.OK or not isinstance(record.command, Done) or record.finished is None:
            continue
        line = done.get(record.command.id)
        if line is None:
            continue                # all were notified of the gap: see _complete
        next_types = []
        for number in (line.number + 1, line.number + 2):
            following = tale.get(number)
            if following is None or following.type not in (b"FINQ", b"FINI"):
                break
            next_types.append(following)
        queue = any(one.type == b"FINQ" and one.words[0] == line.words[0] for one in next_types)
        item = any(one.type == b"FINI" for one in next_types)
        if (queue, item) != (record.finished.queue_done, record.finished.item_done):
            yield _broken(f"DONE {record.command.id} said {record.finished}, and its events are {_text(line)}, "
                            + ", ".join(map(_text, next_types)))


def summary(heard: Heard, records: Iterable[Record]) -> str:
    """Return the number of events received, and the median and maximum delay of a FINI after the answer to its DONE."""
    lines = sum(len(span.lines) for ear in heard.ears.values() for span in ear.spans)
    gaps = sum(isinstance(line, Line) and line.type == b"GAP"
               for ear in heard.ears.values() for span in ear.spans for line in span.lines)
    again = sum(span.again for ear in heard.ears.values() for span in ear.spans)
    anew = sum(not span.again for ear in heard.ears.values() for span in ear.spans[1:])
    late = sorted(_latencies_ms(heard, records))
    text = f"{lines} lines heard, {gaps} gaps, {again} times gone on, {anew} times told it was too old"
    return text if not late else f"{text}; FINI {late[len(late) // 2]:.1f} ms after DONE, {late[-1]:.0f} at most"


def _latencies_ms(heard: Heard, records: Iterable[Record]) -> Iterator[float]:
    ends = {record.command.id: record.end_ns for record in records
            if isinstance(record.command, Done) and record.end_ns is not None and record.finished is not None
            and record.finished.item_done}
    for ear in heard.ears.values():
        for span in ear.spans[:1]:      # a returning subscriber receives old events
            job = 0
            for line in _events(span):
                if line.type == b"DONE":
                    job = int(line.words[2])
                elif line.type == b"FINI" and job in ends:
                    yield (line.at_ns - ends[job]) / 1e6
