"""Runs tasks with headers, errors, retries and results while leaders are killed, and checks the result of each.

    python -m tests.chaos.results [--tasks 20000] [--every 5] [--seed 0]

Workers let some tasks fail once or twice, with an error, and give up a few; the others are done with a result that no
second attempt would give. They record each command when it is acknowledged. At the same time some clients poll for the
results, and others wait for the end of each task.
Each task must have exactly the result in the workers' log, for all clients and on every server; and its record the
state, the attempts, the headers and the last error in it. Otherwise the exit code is 1.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import click
import sockpq
import sockpq.aio

from bench.load_generator.console import make_console
from devcluster.cluster import LocalCluster
from tests.chaos.shown import History, header_block, shown

QUEUE = "tasks"
WORKERS, PUTTERS, ASKERS = 24, 6, 12
EXPIRE_S = 60.0
BACKOFF_S = (0.05, 1.0)
RETAIN_S = 86_400
WAIT_S = 0.5
POLL_S = 0.2
GIVEN_UP, FAILING = 20, 4   # one task of so many
PATIENCE_S = 120.0

@dataclass
class TaskLog:
    """One task, as its workers and the clients that asked for its result know it."""

    number: int
    attempts: int = 0           # hand-outs
    errors: dict[int, str] = field(default_factory=dict)    # of the attempts that failed; acknowledged in any order
    results: list[bytes] = field(default_factory=list)
    given_up: bool = False
    answers: list[bytes] = field(default_factory=list)      # to those who asked


class Campaign:
    """The tasks, by the name in their headers. `problems`: what went wrong."""

    def __init__(self, servers: list[str], tasks: int, rng: random.Random) -> None:
        self.servers = servers
        self.tasks = tasks
        self._rng = rng
        self.log: dict[str, TaskLog] = {}
        self.problems: Counter[str] = Counter()
        self.ended = 0
        self.over = threading.Event()

    async def run(self) -> None:
        """Put the tasks, work on them, ask for their results, and compare."""
        names = iter([f"t{number}" for number in range(self.tasks)])
        crews = [self._put(names) for _ in range(PUTTERS)] + [self._work() for _ in range(WORKERS)]
        try:
            await asyncio.gather(*crews, *[
                self._ask(self._with_results(part)) if part % 2 else self._await(self._with_results(part))
                for part in range(ASKERS)
            ])
        finally:
            self.over.set()

    async def _put(self, names: Iterator[str]) -> None:
        async with sockpq.aio.Client(self.servers, timeout=PATIENCE_S) as client:
            for name in names:
                stored = await client.put(QUEUE, name.encode(), number=True, headers=headers_of(name))
                assert stored.number is not None
                self.log[name] = TaskLog(stored.number)

    async def _work(self) -> None:
        async with sockpq.aio.Client(self.servers, timeout=PATIENCE_S) as client:
            while self.ended < self.tasks:
                job = await client.get(QUEUE, expire=EXPIRE_S, wait=WAIT_S, headers=True, block=True)
                if job is not None:
                    await self._attempt(job)

    async def _attempt(self, job: sockpq.aio.Job) -> None:
        name = (job.headers or {}).get("task", "")
        while name not in self.log:             # its PUT may not be answered yet
            await asyncio.sleep(0.01)
        task = self.log[name]
        task.attempts += 1
        if job.headers != headers_of(name) or job.data != name.encode():
            self.problems["a job has other headers or data"] += 1
        attempt = task.attempts
        error = f"attempt {attempt} of {name} failed: {self._rng.random()}"
        if attempt <= failures_of(name):
            await job.later(error=error)
            task.errors[attempt] = error
        elif is_given_up(name):
            await job.bury(here=True, error=error)
            task.errors[attempt] = error
            task.given_up = True
            self.ended += 1
        else:
            result = b"%s: %d" % (name.encode(), self._rng.getrandbits(64))
            await job.done(result=result)
            task.results.append(result)
            self.ended += 1

    def _with_results(self, part: int) -> list[str]:
        """Return two of the ASKERS parts of the tasks with results: everything is asked twice, once in each way."""
        names = [f"t{number}" for number in range(self.tasks) if number % ASKERS in (part, (part + 1) % ASKERS)]
        return [name for name in names if not is_given_up(name)]

    async def _await(self, names: list[str]) -> None:
        """Wait for the end of one task after the other."""
        async with sockpq.aio.Client(self.servers, timeout=PATIENCE_S) as client:
            for name in names:
                while name not in self.log:
                    await asyncio.sleep(POLL_S)
                ended = None
                while ended is None:
                    ended = await client.await_job(self.log[name].number, wait=WAIT_S)
                if ended.state != "done":
                    self.problems[f"a task ended as {ended.state}"] += 1
                self.log[name].answers.append(ended.data)

    async def _ask(self, names: list[str]) -> None:
        """Poll for the results until all have arrived."""
        waits = set(names)
        async with sockpq.aio.Client(self.servers, timeout=PATIENCE_S) as client:
            while waits:
                for name in list(waits):
                    task = self.log.get(name)
                    if task is not None and (task.results or self._rng.random() < 0.02):
                        try:
                            task.answers.append(await client.job_result(task.number))
                        except sockpq.JobNotFound:
                            continue
                        waits.discard(name)
                await asyncio.sleep(POLL_S)

    def compare(self) -> None:
        """Compare what each server shows of all tasks with the log."""
        for server in self.servers:
            self.compare_with(shown(server, [task.number for task in self.log.values()]))

    def compare_with(self, shown: Iterable[History | None]) -> None:
        """Compare what one server shows of the tasks, in the order of the log."""
        for (name, task), history in zip(self.log.items(), shown, strict=True):
            if history is None:
                self.problems["a task is lost"] += 1
                continue
            expected = History(
                "BURIED" if task.given_up else "DONE", task.attempts, header_block(headers_of(name)), name.encode(),
                task.errors[max(task.errors)].encode() if task.errors else b"", history.result,
            )
            if history != expected:
                self.problems[f"a history differs from the log: {history}, {task}"] += 1
            if not task.given_up and (
                len(task.results) != 1 or {history.result, *task.answers} != {*task.results} or len(task.answers) != 2
            ):
                self.problems["a task has not one result for all"] += 1


def headers_of(name: str) -> dict[str, str]:
    """Return the headers of a task."""
    return {"task": name, "kind": f"kind {int(name[1:]) % 7}"}


def failures_of(name: str) -> int:
    """Return the number of attempts that fail before the one that ends the task."""
    number = int(name[1:])
    return 1 + number % 2 if number % FAILING == 0 or is_given_up(name) else 0


def is_given_up(name: str) -> bool:
    """Return whether a worker gives the task up in the end."""
    return int(name[1:]) % GIVEN_UP == 1


def kill_leaders(cluster: LocalCluster, every_s: float, rng: random.Random, over: threading.Event) -> int:
    """Kill the leader at once, and at this interval until the end; returns how often."""
    kills, due = 0, time.monotonic()
    while True:
        leader = cluster.wait_for_leader()
        cluster.kill(leader)
        kills += 1
        time.sleep(rng.uniform(0.05, 0.2) * every_s)
        cluster.restart(leader)
        due = max(due + every_s, time.monotonic())
        if over.wait(due - time.monotonic()):
            return kills


class Outcome:
    """The outcome of a campaign: how long it took, how many leaders were killed, and what went wrong."""

    def __init__(
        self, campaign: Campaign, seconds: float, compared_s: float, kills: int, error: BaseException | None,
    ) -> None:
        self.seconds = seconds
        self.compared_s = compared_s
        self.kills = kills
        self.attempts = sum(task.attempts for task in campaign.log.values())
        self.asked = sum(len(task.answers) for task in campaign.log.values())
        self.problems = dict(campaign.problems)
        if error is not None:
            self.problems[f"{type(error).__name__}: {error}"] = 1
        if len(campaign.log) != campaign.tasks or campaign.ended != campaign.tasks:
            self.problems["not all tasks have ended"] = campaign.tasks - campaign.ended


def run(tasks: int, every_s: float, seed: int = 0) -> Outcome:
    """Run one campaign: `tasks` jobs, with a leader killed every `every_s` seconds; returns what was found."""
    rng = random.Random(seed)
    errors: list[BaseException] = []
    with LocalCluster(3) as cluster:
        with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
            client.queue_config(QUEUE, retain=RETAIN_S, backoff=BACKOFF_S, error_bytes=1 << 30)
        campaign = Campaign(cluster.servers, tasks, rng)

        def all_of_it() -> None:
            try:
                asyncio.run(campaign.run())
            except Exception as error:
                errors.append(error)
        begun = time.monotonic()
        thread = threading.Thread(target=all_of_it)
        thread.start()
        kills = kill_leaders(cluster, every_s, rng, campaign.over)
        thread.join()
        seconds = time.monotonic() - begun
        if not errors:
            cluster.wait_until_level()
            campaign.compare()
        compared_s = time.monotonic() - begun - seconds
    return Outcome(campaign, seconds, compared_s, kills, errors[0] if errors else None)


@click.command()
@click.option("--tasks", default=20_000, show_default=True, type=click.IntRange(1))
@click.option("--every", "every_s", default=5.0, show_default=True, help="Seconds between two kills.")
@click.option("--seed", default=0, show_default=True)
def main(tasks: int, every_s: float, seed: int) -> None:
    """Kill leaders while tasks are put, done and asked for."""
    outcome, console = run(tasks, every_s, seed), make_console()
    console.print(f"{tasks:,} tasks in {outcome.seconds:.0f} s, {outcome.attempts:,} attempts, "
                  f"{outcome.asked:,} results told meanwhile, {outcome.kills} leaders killed, "
                  f"every {outcome.seconds / max(outcome.kills, 1):.1f} s; "
                  f"compared on each server in {outcome.compared_s:.0f} s")
    for problem, count in list(outcome.problems.items())[:10]:
        console.print(f"{count} times: {problem}", markup=False)
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    main()
