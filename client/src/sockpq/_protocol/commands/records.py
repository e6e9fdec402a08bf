"""Jobs that have ended, the wait for the end of one, and the search for jobs in any state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from sockpq._protocol import arguments
from sockpq._protocol.arguments import ENDED_STATES, STATES, EndedState, State
from sockpq._protocol.command import Blocks, Command, Repeat, call, single
from sockpq._protocol.commands.jobs import PEEK_JOBS_MAX, Shown, described, peeked, peeked_many
from sockpq._protocol.headers import header_name
from sockpq._protocol.reader import LINE, Reader, accepted, as_number, as_text, expect, fields_of, number_of
from sockpq.errors import BadArguments
from sockpq.model import Awaited, FoundJob, Key, Number, PeekedJob

FOUND_JOBS_MAX = 1000


@call("any")
def job_result(number: Number | int) -> Command[bytes]:
    """Return the result of a job that has ended, of done(result=), by its number; b"" without one.

    Raises JobNotFound when it has not ended, or is no longer kept.
    """
    line = f"PEEK NUMBER {arguments.number(number)} RESULT\r\n"
    return Command(line.encode(), b"", _result, Repeat.FREELY, needs=("retain",))


def _result() -> Reader[bytes]:
    length = number_of(as_text((yield LINE)))
    return (yield length)


@call("any")
def ended(number: Number | int, *, headers: bool = False, life: bool = False) -> Command[PeekedJob | None]:
    """Look at a job by its number, even when it has ended and its queue keeps such jobs; None if it is not found.

    `headers`, `life`: fill these.
    """
    shown = Shown(headers=arguments.switch(headers, "headers"), life=arguments.switch(life, "life"))
    line = f"PEEK NUMBER {arguments.number(number)} ENDED{shown.words}\r\n"
    return Command(line.encode(), b"", partial(peeked, shown), Repeat.FREELY, needs=("retain", *shown.needs))


@call("any")
def ended_jobs(queue: str, count: int = 1, *, headers: bool = False) -> Command[list[PeekedJob]]:
    """Look at the last `count` jobs of a queue that have ended, the newest first, if it keeps them (RETAIN)."""
    count = arguments.integer(count, "count", 1, PEEK_JOBS_MAX)
    shown = Shown(headers=arguments.switch(headers, "headers"))
    line = f"PEEK {arguments.name(queue, 'queue')} ENDED COUNT {count}{shown.words}\r\n"
    return Command(
        line.encode(), b"", partial(peeked_many, count, shown), Repeat.FREELY, needs=("retain", *shown.needs),
    )


@call(retry=True)
def retry_ended(number: Number | int) -> Command[int]:
    """Make an ended job ready again, as it was put, by its number; returns 1. Raises JobNotFound."""
    line = f"KICK JOB NUMBER {arguments.number(number)} ENDED"
    return single(line, number_of, Repeat.IF_ASKED, logged=True, needs=("retain",))


@call()
def delete_ended(number: Number | int) -> Command[None]:
    """Remove the record of an ended job from its queue, by its number. Raises JobNotFound."""
    line = f"DELETE NUMBER {arguments.number(number)} ENDED"
    return single(line, accepted, Repeat.IF_ASKED, logged=True, needs=("retain",))


def await_job(job: Number | int | Key, wait: float | None) -> Command[Awaited | None]:
    """AWAIT: the end of a job by its number or key; None when it has not ended within `wait` seconds."""
    if isinstance(job, Key):
        chosen = f"KEY {arguments.name(job.queue, 'queue')} {arguments.job_key(job.key)}"
    else:
        chosen = f"NUMBER {arguments.number(job)}"
    line = f"AWAIT {chosen}{'' if wait is None else arguments.within(wait)}\r\n"
    return Command(line.encode(), b"", _awaited, Repeat.FREELY, Blocks.AT_ONCE, needs=("await",))


def _awaited() -> Reader[Awaited | None]:
    line = yield LINE
    if line == b"408 Wait Timeout":
        return None
    fields = fields_of(as_text(line))
    expect(len(fields) == 2 and fields[0].lower() in (*ENDED_STATES, "dead", "buried"), "the answer to AWAIT")
    return Awaited(fields[0].lower(), (yield as_number(fields[1])))


class Search(NamedTuple):
    """The words of a FIND after its queues."""

    queues: str
    words: str
    page_jobs: int

    def page(self, cursor: str | None) -> Command[Page]:
        """Return the jobs after this cursor; None: the first ones."""
        start = f"FIND {self.queues}{self.words} COUNT {self.page_jobs}"
        line = start if cursor is None else f"{start} FROM {cursor}"
        return Command(f"{line}\r\n".encode(), b"", _page, Repeat.FREELY, slow=True, needs=("find",))


class Page(NamedTuple):
    """Some of the jobs of a search, and the cursor of the next ones, None at its end."""

    jobs: list[FoundJob]
    cursor: str | None


def search(
    queues: str | Iterable[str] | None,
    states: State | EndedState | Iterable[State | EndedState] | None,
    header: tuple[str, str] | None,
    key: str | None,
    item: str | None,
    group: str | None,
    reason: str | None,
    since: float | None,
    until: float | None,
    count: int,
) -> Search:
    """FIND: the jobs of these queues (None: of all) with all these properties. See Client.find."""
    names = arguments.queues(queues)
    words = "" if states is None else f" STATE {_states(states)}"
    if header is not None:
        words += f" HEAD {header_name(header[0])} {quote(header[1], safe='') or '%'}"
    words += "" if key is None else f" KEY {arguments.key_prefix(key)}"
    words += "" if item is None else f" IS {arguments.name(item, 'item')}"
    words += "" if group is None else f" GROUP {arguments.any_group(group)}"
    words += "" if reason is None else f" REASON {arguments.reason(reason)}"
    words += "" if since is None else f" SINCE {arguments.seconds(since, 'since', 0, arguments.UNIX_S_MAX)}"
    words += "" if until is None else f" UNTIL {arguments.seconds(until, 'until', 0, arguments.UNIX_S_MAX)}"
    return Search(
        "|".join(names) if names else "*", words, arguments.integer(count, "count", 1, FOUND_JOBS_MAX),
    )


def _states(states: State | EndedState | Iterable[State | EndedState]) -> str:
    chosen = [states] if isinstance(states, str) else list(states)
    for state in chosen:
        if state not in (*STATES, *ENDED_STATES):
            raise BadArguments(f"a state is one of {', '.join((*STATES, *ENDED_STATES))}, not {state!r}")
    if not chosen:
        raise BadArguments("an empty list of states (None means all but those that have ended)")
    return "|".join(dict.fromkeys(state.upper() for state in chosen))


def _page() -> Reader[Page]:
    fields = fields_of(as_text((yield LINE)))
    expect(len(fields) == 1 or (len(fields) == 3 and fields[1] == "NEXT"), "the answer to FIND")
    found = []
    for _ in range(as_number(fields[0], FOUND_JOBS_MAX)):
        found.append(described(as_text((yield LINE)).split(" ")))
    return Page(found, fields[2] if len(fields) == 3 else None)

