"""Clients that put tasks, work on them, and wait for their results (AWAIT): each task has one result, for all.

All have sessions, so each call happens once, whatever befalls the servers: the worker whose DONE found the job knows
that its result is the one. A worker that was too late has given none.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

from msgspec import Struct, field
from sockpq import Client, JobNotFound, NotExecuted, OutcomeUnknown

from tests.chaos.machines.alterable import AlterableCluster

QUEUE = "awaited"
RETAIN_S = 3600
EXPIRE_S = 8.0
PATIENCE_S = 150.0          # of each call: longer than any outage
WAIT_S = 1.0
ASK_S = 0.05                # for the end of a task that should have ended
PAUSE_S = 0.05
LATE = 0.03                 # the share of attempts that last longer than their lease
WORKERS = 2
OPEN_MAX = 100              # tasks at a time: an episode that lasts long leaves no more than are worked off after it


class Task(Struct):
    """One task, as its clients know it. `given` are the results whose DONE was acknowledged."""

    name: str
    number: int
    given: list[bytes] = field(default_factory=list)
    perhaps: list[bytes] = field(default_factory=list)      # results whose DONE has an unknown outcome
    seen: list[tuple[str, bytes]] = field(default_factory=list)     # the end as reported to a waiting client


class Awaiting:
    """One client puts, some work, one waits for the end of each task, another one asks for it later."""

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self._unsure = 0                                    # PUTs of unknown outcome
        self._waits: SimpleQueue[Task] = SimpleQueue()
        self._open = 0                                      # tasks whose end is not known yet
        self._chance = random.Random()
        self._putting, self._working = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []
        self._servers: list[str] = []

    def begin(self, cluster: AlterableCluster, seed: int) -> None:
        """Create the queue, and start the threads that put, wait and work."""
        self._servers, self._chance = list(cluster.servers), random.Random(f"awaiting {seed}")
        with Client(self._servers, timeout=PATIENCE_S) as client:
            client.queue_create(QUEUE, retain=RETAIN_S)
        loops = [self._put, self._wait, *[self._work] * WORKERS]
        self._threads = [threading.Thread(target=self._run, args=(loop,), name=f"awaiting {loop.__name__}", daemon=True)
                         for loop in loops]
        for thread in self._threads:
            thread.start()

    def finish(self) -> Iterator[str]:
        """Wait until all tasks have ended, then ask for each again."""
        self._putting.set()
        until = time.monotonic() + PATIENCE_S
        while self._open and not self._errors and time.monotonic() < until:
            time.sleep(0.1)
        self.close()
        for error in self._errors:
            yield f"awaited: {type(error).__name__}: {error}"
        if not self._errors:
            with Client(self._servers, timeout=PATIENCE_S) as client:
                for task in self.tasks.values():
                    self._ask(client, task, ASK_S)
        yield from self.judge()

    def close(self) -> None:
        """Stop putting and working, and wait for the threads."""
        self._putting.set()
        self._working.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._threads.clear()

    def report(self) -> str:
        """Return how many there were."""
        return f"{len(self.tasks)} tasks were awaited"

    def judge(self) -> Iterator[str]:
        """Yield a sentence for each task whose end was not awaited correctly."""
        for task in self.tasks.values():
            ends = set(task.seen)
            if not ends:
                yield f"awaited: the end of {task.name} was never heard of"
            elif len(ends) > 1:
                yield f"awaited: {task.name} has several ends: {ends}"
            elif (state := next(iter(ends)))[0] != "done":
                yield f"awaited: {task.name} is {state[0]}, and nobody ended it so"
            elif len(task.given) > 1:
                yield f"awaited: {task.name} was done {len(task.given)} times"
            elif state[1] not in (task.given or task.perhaps):
                yield f"awaited: {task.name} has the result {state[1]!r}, and its workers gave {task.given}"

    # what each does

    def _run(self, loop: Callable[[Client], None]) -> None:
        try:
            with Client(self._servers, timeout=PATIENCE_S) as client:
                loop(client)
        except BaseException as error:
            self._errors.append(error)

    def _put(self, client: Client) -> None:
        count = 0
        while not self._putting.wait(PAUSE_S):
            if self._open >= OPEN_MAX:
                continue
            count += 1
            try:
                number = client.put(QUEUE, f"task-{count}", number=True).number
            except (NotExecuted, OutcomeUnknown):
                self._unsure += 1
                continue
            assert number is not None
            task = self.tasks[number] = Task(f"task-{count}", number)
            self._open += 1
            self._waits.put(task)

    def _work(self, client: Client) -> None:
        while not self._working.is_set():
            try:
                job = client.get(QUEUE, expire=EXPIRE_S, wait=WAIT_S, block=True, meta=True)
            except (NotExecuted, OutcomeUnknown):
                continue
            if job is None or job.number is None:
                continue
            if self._chance.random() < LATE:
                self._working.wait(EXPIRE_S * 1.2)
            result = f"{job.text} {self._chance.getrandbits(64):x}".encode()
            try:
                job.done(result=result)
            except JobNotFound:
                continue                                    # it was too late
            except (NotExecuted, OutcomeUnknown):
                self._note(job.number, result, sure=False)
            else:
                self._note(job.number, result, sure=True)

    def _note(self, number: int, result: bytes, *, sure: bool) -> None:
        until = time.monotonic() + PATIENCE_S
        while number not in self.tasks and time.monotonic() < until and not self._working.is_set():
            time.sleep(0.01)                                # the answer to its PUT is on the way
        task = self.tasks.get(number)
        if task is not None:                                # else it is unknown whether it was put
            (task.given if sure else task.perhaps).append(result)

    def _wait(self, client: Client) -> None:
        while not self._working.is_set():
            try:
                task = self._waits.get(timeout=WAIT_S)
            except Empty:
                continue
            while not self._ask(client, task, WAIT_S) and not self._working.is_set():
                pass
            self._open -= 1

    def _ask(self, client: Client, task: Task, wait_s: float) -> bool:
        """Write down its end; returns whether it has come."""
        try:
            ended = client.await_job(task.number, wait=wait_s)
        except JobNotFound:
            task.seen.append(("lost", b""))
            return True
        except (NotExecuted, OutcomeUnknown):
            return False
        if ended is not None:
            task.seen.append((ended.state, ended.data))
        return ended is not None
