"""The events that subscribers to a true history receive: one at each node, with lost connections and messages."""

from __future__ import annotations

from random import Random

from sockpqd import core
from sockpqd.gateway.events.lines import line_of
from tests.chaos.histories.simulated import Knobs, World
from tests.chaos.histories.simulated_clients import live
from tests.chaos.workload.heard import Heard, Line, Span
from tests.chaos.workload.history import Record

NODES = ("n1", "n2", "n3")
MESSAGE_EACH = 10           # events
LEAVES_EACH = 50           # events, about: a connection ends
MISSED = 30                 # events, at most, before it resumes


def true_tale(seed: int, knobs: Knobs = Knobs()) -> tuple[Heard, list[Record]]:     # noqa: B008
    """Return the events that all subscribers received, and the answers to the clients."""
    world = World(seed, knobs)
    world.machine.record(core.EVENT_TYPES)
    live(world)
    lines = [_line(event, at_ns) for at_ns, event in world.events]
    heard, random = Heard(), Random(seed)
    said = [line.number for line in lines[::MESSAGE_EACH]]       # behind these events
    heard.messages = dict.fromkeys(range(1, len(said) + 1), 0)
    for name in NODES:
        heard.ear(name).spans = _spans(lines, said, random)
    heard.all_came_to_the_end = True
    return heard, world.history.records


def _line(event: core.Event, at_ns: int) -> Line:
    words = line_of(event).split()
    return Line(event.seq, words[2], tuple(words[3:]), event.seq, at_ns)


def _spans(lines: list[Line], said: list[int], random: Random) -> list[Span]:
    """Return the events that one subscriber received. FROM repeats the missed ones, unless they are too old or a
    GAP.
    """
    place = {number: message for message, number in enumerate(said, 1)}
    spans = [Span(0, False, 0, [], 0)]
    ahead = 0                                           # events that it missed or that a GAP reported
    for at, line in enumerate(lines):
        if ahead:
            ahead -= 1
            continue
        spans[-1].lines.append(line)
        if line.number in place:
            spans[-1].lines.append(place[line.number])
        if random.random() < 1 / LEAVES_EACH and at + MISSED + 1 < len(lines):
            ahead = random.randrange(1, MISSED)
            last = lines[at + ahead].number
            how = random.choice(("from", "too old", "gap"))
            if how == "from":
                ahead = 0
                spans.append(Span(line.number, True, last, [], 0))
            elif how == "too old":
                spans.append(Span(last, False, last, [], 0))
            else:
                gap = b"%d" % (line.number + 1), b"%d" % last
                spans[-1].lines.append(Line(last, b"GAP", gap, line.number + 1, line.at_ns))
    return spans
