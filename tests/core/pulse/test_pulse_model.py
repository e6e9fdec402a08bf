"""Random histories of the machine and of the reference model of pulses, which here has queues with a rate too.

All times are multiples of 16 ms, the grain in which the machine looks at its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from sockpqd.core import (
    Accepted,
    Allowance,
    Batch,
    ConfigurePulse,
    ConfigureQueue,
    Delete,
    DeletePulse,
    Done,
    End,
    Feedback,
    Get,
    GetWith,
    GiveResult,
    Grant,
    HandedMany,
    How,
    Later,
    Machine,
    Move,
    Operation,
    Policy,
    Pulse,
    PulseChange,
    Put,
    QueueChange,
    Reply,
    Selector,
    SetPulse,
    TakeTurn,
    Then,
    Tick,
)
from sockpqd.core.pulse.pulses import Pulses
from tests.core.helpers.logs import lead, restored, snapshot_of
from tests.core.model.pulses import ModelPulse, ModelPulses, OnPulses

QUEUES = ("a", "b", "c", "d")
SHARED = ("p", "r")             # pulses that are not a queue's own
DAY_MS = 86_400_000
Given = tuple[int, str]         # the id of a job and its queue
OK, FAIL, SLOW, SLEEP = Feedback.OK, Feedback.FAIL, Feedback.SLOW, Feedback.SLEEP


@dataclass(eq=False)
class One:
    """A job. `pulse`: the name of the pulse that granted its hand-out."""

    queue: str
    place: int
    id: int | None = None
    pulse: str | None = None
    ends: int | None = None


class Model(ModelPulses):
    """Pulses as in the reference model, and queues with a rate."""

    def __init__(self) -> None:
        super().__init__()
        self.clock_ms = 1_600_000
        self.events = []
        self.of_queue: dict[str, str] = {}
        self.waiting: list[One] = []
        self.places = 0
        self.ids = 0

    def in_use(self, pulse: str) -> bool:
        return pulse in self.of_queue.values()

    def pass_time(self) -> None:
        """Do what is due before each entry: end leases, judge results."""
        for job in [job for job in self.waiting if job.id and job.ends is not None and job.ends <= self.clock_ms]:
            self.waiting.remove(job)            # THEN DONE: no result
        self.judge_pulses()

    def add(self, queue: str) -> None:
        """Put a job into this queue."""
        self.places += 1
        self.waiting.append(One(queue, self.places))

    def take(self, asked: Sequence[str], count: int, free: dict[str, int], lease: int | None) -> list[Given]:
        """GET BY ORDER with these grants: ids and queues."""
        free = {
            name: number for name, number in free.items() if (one := self.pulses.get(name)) is not None
            and self.clock_ms >= one.sleep_until and not one.deny
        }
        given: list[Given] = []
        while len(given) < count:
            for queue in asked:
                ready = sorted((job.place, job) for job in self.waiting if job.id is None and job.queue == queue)
                pulse = self.of_queue.get(queue)
                if ready and (pulse is None or free.get(pulse, 0) > 0):
                    break
            else:
                break
            job = ready[0][1]
            self.ids += 1
            job.id, job.ends, job.pulse = self.ids, None if lease is None else self.clock_ms + lease, pulse
            if pulse is not None:
                free[pulse] -= 1
                self.pulses[pulse].give(1, self.clock_ms)
            given.append((job.id, queue))
        return given

    def end(self, number: int, result: Feedback | None, sleep: int, to: str | None) -> bool:
        """End a hand-out; `to`: the queue that the job goes to, if it stays."""
        job = next((job for job in self.waiting if job.id == number), None)
        if job is None:
            return False
        pulse = self.pulses.get(job.pulse or "")
        if pulse is not None and result is not None:
            pulse.result(result, sleep, self.clock_ms)
        self.waiting.remove(job)
        if to is not None:
            self.add(to)
        return True

    def configure(self, queue: str, rate: int, per: int) -> bool:
        """QUEUE CONFIG with RATE, 0 is OFF; returns whether it is done."""
        own, had = f"queue:{queue}", self.of_queue.get(queue)
        if rate and had not in (None, own):
            return False
        if rate:
            self.pulses.setdefault(own, ModelPulse()).change(PulseChange(rate, per))
            self.of_queue[queue] = own
        elif had == own:
            del self.of_queue[queue], self.pulses[own]
        return True

    def share(self, queue: str, pulse: str) -> bool:
        """QUEUE CONFIG with PULSE, "" is OFF; returns whether it is done."""
        own, had = f"queue:{queue}", self.of_queue.get(queue)
        if pulse:
            if had == own or pulse not in self.pulses:
                return False
            self.of_queue[queue] = pulse
        elif had != own:
            self.of_queue.pop(queue, None)
        return True


class History:
    """Random entries for both, which must agree."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.model = Model()
        self.machine = Machine()
        self.term = 1
        self.before_ms = 0              # replicated time before the last entry
        self.apply(lead(term=1))

    def apply(self, operation: Operation) -> Reply:
        """Apply one entry to the machine, at the model's time."""
        self.before_ms = self.machine.clock_ms
        (reply,) = self.machine.apply(self.machine.index + 1, self.model.clock_ms, 0, [operation]).replies
        return reply

    def step(self) -> None:
        """Let random time pass, and execute one random operation."""
        random, model = self.random, self.model
        model.clock_ms += random.choice([0, 0, 16, 16, 160, 160, 320, 800, 1600])
        if random.random() < 0.05:
            self.new_leader()
            return
        model.pass_time()
        random.choice([
            self.pulse, self.pulse, self.grant, self.grant, self.grant, *4 * [self.result], self.put, self.put,
            self.take, self.take, self.take, self.end, self.end, self.end, self.queue, self.nothing,
        ])()
        self.same()

    def any_pulse(self) -> str:
        """Return a name that may be one of a pulse."""
        return self.random.choice([*SHARED, *SHARED, *(f"queue:{queue}" for queue in QUEUES)])

    def both(self, operation: OnPulses) -> None:
        """Apply an operation on pulses to both."""
        assert self.apply(operation) == self.model.on_pulse(operation), operation

    def pulse(self) -> None:
        """Apply CREATE, CONFIG, DELETE, SET."""
        random, kind = self.random, self.random.random()
        change = PulseChange(
            random.choice([None, 1, 2, 5]), random.choice([None, 160, 800, 4800]), random.choice([None, 160]),
            random.choice([None, 0, 320, 800]), random.choice([None, 1600]),
            160 if kind > 0.4 and random.random() < 0.1 else None, random.choice([None, None, True, False]),
        )
        if kind < 0.4:
            self.both(
                ConfigurePulse(
                    random.choice(SHARED), change, create=True, together=random.random() < 0.1,
                    pulses_max=random.choice([None, None, None, 2]),
                ),
            )
        elif kind < 0.7:
            self.both(ConfigurePulse(self.any_pulse(), change))
        elif kind < 0.8:
            self.both(DeletePulse(self.any_pulse()))
        else:
            self.both(SetPulse(self.any_pulse(), b"x", random.random() < 0.3))

    def grant(self) -> None:
        """Ask for a random number of grants, by PULSE WAIT of some clients or a session."""
        name, count = self.any_pulse(), self.random.choice([0, 1, 1, 3])
        self.both(Grant(name, count) if self.random.random() < 0.5 else TakeTurn(name, count > 0))

    def feedback(self) -> tuple[Feedback, int]:
        """Return how something turned out."""
        return self.random.choice([OK, OK, OK, FAIL, SLOW, SLOW, SLEEP]), self.random.choice([160, 8000])

    def result(self) -> None:
        """Report a result of a ticket, which may be unknown or closed."""
        model, random = self.model, self.random
        ticket = random.choice([
            max(0, model.last_ticket - random.randrange(20)),
            *[ticket for pulse in model.pulses.values() for ticket in pulse.open(model.clock_ms)][-5:],
        ])
        self.both(GiveResult(ticket, *self.feedback()))

    def put(self) -> None:
        """Put a job into a random queue."""
        queue = self.random.choice(QUEUES)
        self.apply(Put(queue, 0, b""))
        self.model.add(queue)

    def take(self) -> None:
        """Apply GET, with the grants that are reported as free."""
        random = self.random
        asked = tuple(random.sample(QUEUES, random.randrange(1, 5)))
        everywhere = random.random() < 0.3          # ORDER takes them by their names then
        free = {self.any_pulse(): random.randrange(4) for _ in range(random.randrange(4))}
        count, lease = random.choice([1, 2, 5]), random.choice([None, None, 4800])
        names = None if everywhere else asked
        get = Get(names, lease, Then.DONE) if lease else Get(names)
        reply = self.apply(
            GetWith(get, count, Policy.ORDER, free=tuple(Allowance(name, number) for name, number in free.items()))
        )
        there = sorted({job.queue for job in self.model.waiting})
        given = self.model.take(there if everywhere else asked, count, free, lease)
        got = [(job.id, job.queue) for job in reply.jobs] if isinstance(reply, HandedMany) else []
        assert got == given

    def end(self) -> None:
        """Apply DONE, LATER, MOVE, BURY, DELETE."""
        random, model = self.random, self.model
        number = random.choice([0, *3 * [job.id for job in model.waiting if job.id]])
        queue = next((job.queue for job in model.waiting if job.id == number), "a") if number else "a"
        result, sleep = self.feedback()
        other = random.choice(QUEUES)
        operation, told, to = random.choice([
            (Done(number), OK, None), (Later(number), OK, queue), (Move(number, other), OK, other),
            *2 * [(End(number, How.DONE, feedback=result, sleep_ms=sleep), result, None)],
            *2 * [(End(number, How.LATER, feedback=result, sleep_ms=sleep), result, queue)],
            (Done(number), OK, None) if queue.endswith("_dead") else
            (End(number, How.BURY, reason="why"), FAIL, f"{queue}_dead"), (Delete(Selector(id=number)), None, None),
        ])
        if random.random() < 0.2:               # it is taken back
            self.apply(Batch((operation, Done(0)), atomic=True))
        reply = type(self.apply(operation)).__name__
        assert (reply != "NotFound") is model.end(number, told, sleep, to)

    def queue(self) -> None:
        """Apply QUEUE CONFIG with RATE or PULSE."""
        random, queue = self.random, self.random.choice(QUEUES)
        if random.random() < 0.5:
            rate, per = random.choice([0, 1, 3]), random.choice([160, 1600])
            more, done = QueueChange(rate=rate, per_ms=per), self.model.configure(queue, rate, per)
        else:
            pulse = random.choice(["", *SHARED])
            more, done = QueueChange(pulse=pulse), self.model.share(queue, pulse)
        reply = self.apply(ConfigureQueue(queue, more))
        assert (reply == Accepted()) is done

    def nothing(self) -> None:
        """Apply a Tick, so that only time passes."""
        self.apply(Tick())

    def new_leader(self) -> None:
        """Elect a leader whose first entry judges nothing; the next one does."""
        self.term += 1
        self.model.clock_ms += self.random.choice([0, 0, DAY_MS])       # its clock may be ahead
        self.apply(lead(node=f"n{self.term % 3 + 1}", term=self.term))
        self.model.lead_pulses(self.before_ms)
        self.same()

    def same(self) -> None:
        """Assert that everything that can be read is equal."""
        model, machine = self.model, self.machine
        assert set(machine.pulses) == set(model.pulses)
        for name, pulse in model.pulses.items():
            found = machine.pulses[name]
            lengths = found.per_ms, found.step_ms, found.max_pause_ms, found.max_run_ms, found.max_wait_ms
            assert lengths == (pulse.per, pulse.step, pulse.max_pause, pulse.max_run, pulse.max_wait), name
            assert (found.rate, found.together) == (pulse.rate, pulse.together), name
            assert (found.payload, found.deny) == (pulse.payload, pulse.deny), name
            assert (found.now, found.pause_ms) == (pulse.now, pulse.pause), name
            assert found.sleep_until_ms == pulse.sleep_until, name
            assert (found.granted, found.errors) == (pulse.granted, pulse.errors), name
            still = [ticket for ticket, until in found.tickets.items() if until > model.clock_ms]
            assert still == pulse.open(model.clock_ms), name
            assert [at for at, count in found.window for _ in range(count)] == pulse.grants, name
        assert {name for names in machine.rate_limited_queues.values() for name in names} == set(model.of_queue)
        ready = {(pulse, name) for pulse, names in machine.ready_of_pulse.items() for name in names}
        there = {job.queue for job in model.waiting if job.id is None}
        assert ready == {(pulse, name) for name, pulse in model.of_queue.items() if name in there}


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_of_both(seed: int) -> None:
    history = History(seed)
    for number in range(1000):
        history.step()
        if number % 100 == 99:
            before = snapshot_of(history.machine)
            history.machine = restored(before)
            assert snapshot_of(history.machine) == before


# ---- the model notices when a rule is missing


def _back_after_a_fail(pulse: Pulse) -> None:
    pulse.failed = False


def _no_greatest_pause(pulse: Pulse) -> None:
    pulse.max_pause_ms = 1 << 40


def _not_too_slow(pulse: Pulse) -> None:
    pulse.slow = False


def _forgiving(pulse: Pulse) -> None:
    pulse.pause_ms = 0


@pytest.mark.parametrize("wrong", [_back_after_a_fail, _no_greatest_pause, _not_too_slow, _forgiving])
def test_a_wrong_law_is_noticed(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Pulse], None]) -> None:
    judge = Pulse.judge

    def judged(pulse: Pulse) -> bool:
        limit = pulse.max_pause_ms
        wrong(pulse)
        changed = judge(pulse)
        pulse.max_pause_ms = limit
        return changed
    monkeypatch.setattr(Pulse, "judge", judged)
    assert _noticed()


def _nothing(*arguments: object) -> None:
    return None


def _first_sleep(pulse: Pulse, result: Feedback, sleep_ms: int, clock_ms: int) -> bool:
    """Not the latest that was asked for; and it begins a period."""
    pulse.errors += result is not OK
    pulse.slow |= result is SLOW
    pulse.failed |= result is FAIL
    if result is SLEEP:
        pulse.sleep_until_ms = clock_ms + sleep_ms
        return False
    if pulse.period_ends_ms:
        return False
    pulse.period_ends_ms = clock_ms + pulse.length_ms
    return True


def _of_any_ticket(pulses: Pulses, ticket: int, clock_ms: int) -> Pulse | None:
    """Also when its time is up."""
    name = pulses.tickets.get(ticket)
    return None if name is None else pulses.by_name[name]


@pytest.mark.parametrize(("where", "name", "wrong"), [
    (Pulses, "lead", _nothing),                         # a new leader counts what was stamped when it was stamped
    (Pulse, "drop_period", _nothing),                   # CONFIG keeps the results that were not judged
    (Pulse, "note", _first_sleep),
    (Pulses, "of_ticket", _of_any_ticket),
    (Pulses, "restore_results", _nothing),              # a transaction that was aborted had results all the same
])
def test_a_missing_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, where: type, name: str, wrong: object) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert _noticed()


def _noticed() -> bool:
    for seed in range(40):
        history = History(seed)
        for _ in range(400):
            try:
                history.step()
            except (AssertionError, KeyError, ValueError):
                return True
    return False
