"""A client with sessions: sockpq, with every call written down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sockpq import Client, Job, JobNotFound, NoOutput, NotExecuted, OutcomeUnknown

from tests.chaos.workload import history
from tests.chaos.workload.bodies import body, name_of
from tests.chaos.workload.history import Done, Get, Handed, History, Later, Outcome, Put, Record
from tests.chaos.workload.plain import as_known

CALL_S = 15.0
WAIT_S = 1.0            # the interval at which a blocked call checks whether to stop


class SessionClient:
    """One call after the other, with the interface of PlainClient."""

    def __init__(self, name: str, client: Client, log: History) -> None:
        """`client` may be shared by many."""
        self.name = name
        self._client = client
        self._history = log
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Start nothing new that waits; for another thread."""
        self._stopping.set()

    def close(self) -> None:
        """Do nothing: the client is closed by its creator."""

    def put(self, put: Put) -> Record | None:
        """PUT. An item `""` is one that the server names."""
        def execute(start: int) -> Record:
            item = self._client.put(put.queue, body(put.body), put.priority, put.item or None, put.item == "").item
            return self._record(Put(put.body, put.queue, put.priority, item), start, Outcome.OK)
        return self._run(put, execute)

    def get(self, get: Get) -> Record | None:
        """GET, GETB or GETBE. A waiting one is withdrawn now and then; whether it had a job by then is unknown."""
        if self._stopping.is_set() and get.blocks:
            return None

        def execute(start: int) -> Record:
            then = None if get.expire_ms is None else "done" if get.then_done else "later"
            job = self._client.get(
                get.queues, block="until_done" if get.until_finished else get.blocks, then=then,    # type: ignore[arg-type]
                expire=None if get.expire_ms is None else get.expire_ms / 1000, wait=WAIT_S if get.blocks else None,
                policy=get.policy,
            )
            if job is None:
                return self._record(get, start, Outcome.UNKNOWN if get.blocks else Outcome.OK)
            return self._record(get, start, Outcome.OK, handed=_handed(job))
        return self._run(get, execute)

    def consume(self, get: Get, prefetch: int, took: Callable[[], None]) -> None:
        """consume() until no job comes for a while; `took` is called for each. Outcomes are recorded when known.

        A job was handed out after the previous one had ended; with `prefetch` perhaps as soon as the loop began. The
        DONE of a job has happened when the next one arrives; with `prefetch`, at the latest when the loop ends.
        """
        assert get.expire_ms is not None
        began = time.monotonic_ns()
        owed: list[tuple[int, int]] = []            # ids of jobs that are over, and since when
        try:
            for job in self._client.consume(get.queues, expire=get.expire_ms / 1000, wait=WAIT_S, prefetch=prefetch):
                if prefetch == 1:
                    self._ended(owed, Outcome.OK)
                self._history.add(self._record(get, began, Outcome.OK, handed=_handed(job)))
                took()
                owed.append((job.id, time.monotonic_ns()))
                if prefetch == 1:
                    began = time.monotonic_ns()
        except (NotExecuted, OutcomeUnknown, JobNotFound):
            self._history.add(self._record(get, began, Outcome.UNKNOWN))
        else:
            if prefetch == 1:
                self._ended(owed, Outcome.OK)
        self._ended(owed, Outcome.UNKNOWN)

    def _ended(self, owed: list[tuple[int, int]], outcome: Outcome) -> None:
        """Record the DONEs of these jobs. Of several in one packet it is unknown which was too late."""
        for number, since in owed:
            self._history.add(self._record(Done(number), since, outcome))
        owed.clear()

    def done(self, number: int) -> Record | None:
        """Call done(), and record its outcome."""
        def execute(start: int) -> Record:
            done = self._client.done(number)
            finished = history.Finished(done.queue_done, done.item_done)
            return self._record(Done(number), start, Outcome.OK, finished=finished)
        return self._run(Done(number), execute)

    def later(self, number: int) -> Record | None:
        """Call later(), and record its outcome."""
        def execute(start: int) -> Record:
            self._client.later(number)
            return self._record(Later(number), start, Outcome.OK)
        return self._run(Later(number), execute)

    def call(self, put: Put, output: Get) -> list[Record]:
        """Execute PUT .. NEW WAIT; return the record of the PUT, and the output's if the PUT was executed."""
        assert output.expire_ms is not None
        start = time.monotonic_ns()
        handed: Job | None = None
        item: str | None = None
        try:
            handed = self._client.call(
                put.queue, body(put.body), output.queues[0], priority=put.priority, expire=output.expire_ms / 1000,
                then="later", wait=WAIT_S,
            )
            item = handed.item
        except NoOutput as error:
            item = error.item
        except (NotExecuted, OutcomeUnknown) as error:
            first = self._record(put, start, _outcome(error))
            self._history.add(first)
            if first.outcome is Outcome.UNKNOWN:    # if it was executed it may have been given its output, too
                self._history.add(self._record(output, start, Outcome.UNKNOWN))
            return [first]
        first = self._record(Put(put.body, put.queue, put.priority, item), start, Outcome.OK)
        waited = Get(output.queues, output.expire_ms, output.then_done, blocks=True, item=item)
        answer = {} if handed is None else {"handed": _handed(handed)}
        second = self._record(waited, start, Outcome.OK if handed else Outcome.UNKNOWN, **answer)
        self._history.add(first)
        self._history.add(second)
        return [first, second]

    def _run(self, command: history.Command, execute: Callable[[int], Record]) -> Record:
        start = time.monotonic_ns()
        try:
            record = execute(start)
        except JobNotFound:
            record = self._record(command, start, Outcome.OK, missing=True)
        except (NotExecuted, OutcomeUnknown) as error:
            record = self._record(command, start, _outcome(error))
        self._history.add(record)
        return record

    def _record(self, command: history.Command, start: int, outcome: Outcome, **answer: object) -> Record:
        end = time.monotonic_ns()
        return Record(self.name, as_known(command), start, end, outcome, None, session=True, **answer)     # type: ignore[arg-type]


def _outcome(error: Exception) -> Outcome:
    return Outcome.UNKNOWN if isinstance(error, OutcomeUnknown) else Outcome.NOT_EXECUTED


def _handed(job: Job) -> Handed:
    return Handed(job.id, job.queue, job.priority, name_of(job.data), job.item)
