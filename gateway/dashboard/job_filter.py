"""Filters of jobs: turns the fields of a form into properties for FIND, and searches for the jobs that have them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from datetime import UTC, datetime
from heapq import merge
from itertools import groupby, islice
from urllib.parse import quote

from msgspec import Struct

from sockpqd.core import FindPlace, JobView, Search, Section, Wanted
from sockpqd.gateway.commands.find import Slices
from sockpqd.gateway.dashboard.actions import BadForm, word
from sockpqd.gateway.dashboard.visitor import Visitor
from sockpqd.gateway.limits import FIND_SLICE, FIND_SLICE_BYTES, FIND_SLICE_NAMES, FOUND_COST, STEP_COST
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.grammar.find import find
from sockpqd.gateway.server.hub import Hub

# Options of FIND that a filter has as fields. A header has two fields: its name and its value.
OPTIONS = {"states": "STATE", "key": "KEY", "item": "IS", "group": "GROUP", "reason": "REASON", "since": "SINCE",
           "until": "UNTIL", "from": "FROM"}
FIELDS = ("queues", *OPTIONS, "header", "value", "died_in", "unreasoned")
AGO = re.compile(r"([0-9]{1,6}) ?(s|min|h|d)")
UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
# The same in words, for people.
CONDITIONS = {"reason": "of the reason {}", "unreasoned": "without a reason", "key": "with a key like {}",
              "item": "of the item {}", "group": "of the group {}", "since": "since {}", "until": "until {}"}


class JobFilter(Struct, frozen=True):
    """The properties of the jobs to find. `queues`: None for all that the visitor manages.

    `died_in`: only dead jobs of this queue; `unreasoned`: only those without a reason. `line`: the FIND command for
    them; `fields`: the fields of an equal form, with absolute times.
    """

    queues: tuple[str, ...] | None
    wanted: Wanted
    begin: FindPlace | None
    died_in: str
    unreasoned: bool
    line: str
    fields: dict[str, str]

    def holds(self, job: JobView) -> bool:
        """Return whether a job that FIND has found matches the whole filter."""
        return (not self.died_in or job.origin == self.died_in) and not (self.unreasoned and job.reason)

    def in_words(self) -> str:
        """Return what the filter finds in words: "dead jobs of mail, of the reason Timeout"."""
        its = self.fields
        states = f"{_either(its['states']).lower()} " if "states" in its else ""
        of = its.get("died_in") or _either(its.get("queues", "").removeprefix("*"))
        parts = [f"{states}jobs of {of or 'all queues'}"]
        for name, said in CONDITIONS.items():
            if name in its:
                parts.append(said.format(_moment(its[name]) if name in ("since", "until") else its[name]))
        if "header" in its:
            parts.append(f"with the header {its['header']}" + (f": {its['value']}" if "value" in its else ""))
        return ", ".join(parts)


def filter_of(given: Mapping[str, str], now_ms: int) -> JobFilter:
    """Return the filter of a form's fields. Times are Unix times, or ages: `90 s`, `10 min`, `2 h`, `3 d`.

    Raises BadForm.
    """
    fields = {name: given[name].strip() for name in FIELDS if given.get(name, "").strip()}
    for name in ("since", "until"):
        ago = AGO.fullmatch(fields.get(name, ""))
        if ago is not None:
            fields[name] = str(max(0, now_ms // 1000 - int(ago[1]) * UNITS_S[ago[2]]))
    if "key" in fields and not fields["key"].endswith("*"):
        fields["key"] += "*"
    words = ["FIND", fields.get("queues", "*")]
    for name, option in OPTIONS.items():
        if name in fields:
            words += [option, word(fields, name)]
    if "header" in fields:
        words += ["HEAD", word(fields, "header"), quote(fields.get("value", ""), safe="") or "%"]
    elif "value" in fields:
        raise BadForm("give the header that is to have this value")
    if "died_in" in fields:
        word(fields, "died_in")
    try:
        queues, wanted, _, begin = find([one.encode() for one in words]).arguments
    except ArgumentError as error:
        raise BadForm(error.reason) from None
    return JobFilter(queues, wanted, begin, fields.get("died_in", ""), "unreasoned" in fields, " ".join(words), fields)


def _either(words: str) -> str:
    return " or ".join(word for word in words.split("|") if word)


def _moment(unix_s: str) -> str:
    """Return a time of FIND as people write it; unchanged if it is beyond what calendars can show."""
    try:
        return datetime.fromtimestamp(float(unix_s), UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return unix_s


async def matches(
    hub: Hub, visitor: Visitor, chosen: JobFilter, *, before_seq: int | None = None, looked_max: int | None = None,
    found_max: int = FIND_SLICE,
) -> AsyncGenerator[tuple[list[JobView], FindPlace | None], None]:
    """Yield the jobs of a filter in slices, each with the point reached, None at the end.

    The slices take turns like those of FIND. `before_seq`: only jobs with an older place, so that a job that is put
    back in the meantime is not found again. `looked_max`: the number of jobs and queues after which the search ends.
    `found_max`: jobs in a slice. Raises PageLost.
    """
    machine, search, slices = hub.cluster.machine, Search(chosen.wanted), Slices(hub)
    looked = left = 0
    for name in await _names(hub, visitor, slices, chosen):
        begin = chosen.begin
        place = begin if begin is not None and begin.queue == name else FindPlace(name)
        looked += 1
        while place.section is not Section.OVER:
            if left <= 0:
                await slices.begin()
                left = FIND_SLICE
            step = machine.find(
                search, place, min(found_max, max(1, left // FOUND_COST)), max(1, left), FIND_SLICE_BYTES)
            place = step.place
            looked += step.looked
            left -= STEP_COST + step.looked + FOUND_COST * len(step.jobs) + (
                FIND_SLICE * step.looked_bytes // FIND_SLICE_BYTES)
            yield [
                job for job in step.jobs if chosen.holds(job) and (before_seq is None or job.seq < before_seq)
            ], place
            if looked_max is not None and looked >= looked_max:
                return
    yield [], None


async def _names(hub: Hub, visitor: Visitor, slices: Slices, chosen: JobFilter) -> Iterator[str]:
    """Return the queues to search in their order, from the one where the search begins.

    They are sorted in pieces, and merged lazily.
    """
    first = "" if chosen.begin is None else chosen.begin.queue
    left = iter(hub.cluster.machine.all_queue_names() if chosen.queues is None else chosen.queues)
    runs: list[list[str]] = []
    while piece := list(islice(left, FIND_SLICE_NAMES)):
        await slices.begin()
        runs.append(sorted([name for name in piece if name >= first and visitor.manages(name)]))
    return (name for name, _ in groupby(merge(*runs)))
