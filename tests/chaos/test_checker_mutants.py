"""True histories accuse nobody; the same histories, changed a little, are found out.

A change need not be found in every history: what clients do not see may explain it. But each kind has to be found in a
good share of them, by one of the rules that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from msgspec.structs import replace

from tests.chaos.checker import Facts, check
from tests.chaos.histories.simulated import Knobs
from tests.chaos.histories.simulated_clients import true_history
from tests.chaos.workload.history import Done, Finished, Get, History, Later, Outcome, Policy, Put, Record

WORLDS = {
    "usual": Knobs(),
    "calm": Knobs(lost=0, failover_s=0),
    "lossy": Knobs(lost=0.12),
    "two in a hurry": Knobs(clients=2, session_clients=0, think_ms=5),
    "leases come back": Knobs(then_done=0, leaseless=0),
    "sessions": Knobs(clients=0, session_clients=6, lost=0.08),
    "slow": Knobs(clients=12, think_ms=200),
    "failovers": Knobs(failover_s=0.8),
    "many jobs": Knobs(puts=0.7),
    "policies": Knobs(puts=0.6, policies=("order", "sorted", "priority", "place", "oldest", "rr", "weight", "random")),
}
SEEDS = 6           # for each world: as many true histories
UNTOLD = 2          # of these are judged without what the servers were told, too
MUTANTS = 12        # of each kind

known = cache(true_history)


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_is_wrong_in_a_true_history(world: str) -> None:
    for seed in range(SEEDS):
        history, facts = known(seed, WORLDS[world])
        assert len(history.records) > 100
        assert check(history, facts) == [], f"seed {seed}"
        if seed < UNTOLD:       # what is not told accuses nobody either
            assert check(history, Facts(lease_slack_ms=None)) == [], f"seed {seed}"


def test_a_seed_makes_a_history() -> None:
    assert true_history(1)[0].records == known(1, Knobs())[0].records


# ---- mutants: each changes the records in place

Mutant = Callable[[list[Record], Random], None]


def _acted(record: Record) -> bool:
    return record.outcome is Outcome.OK and not record.missing


def _choose(records: list[Record], random: Random, wanted: Callable[[Record], bool]) -> int:
    return random.choice([number for number, record in enumerate(records) if wanted(record)])


def _handed(record: Record) -> bool:
    return record.handed is not None


def _id(record: Record) -> int | None:
    if isinstance(record.command, Done | Later):
        return record.command.id
    return None if record.handed is None else record.handed.id


def lose(records: list[Record], random: Random) -> None:
    """Let the servers forget a job that was done after its PUT."""
    number = _choose(records, random, _handed)
    body = records[number].handed.body     # type: ignore[union-attr]
    gone = {record.handed.id for record in records if record.handed is not None and record.handed.body == body}
    records[:] = [record for record in records if _id(record) not in gone]
    for number in sorted(gone, reverse=True):
        _shift(records, number, -1)             # those ids were given to others


def _shift(records: list[Record], after: int, by: int) -> None:
    """Change all ids after this one."""
    for place, record in enumerate(records):
        if record.handed is not None and record.handed.id > after:
            records[place] = replace(record, handed=replace(record.handed, id=record.handed.id + by))
        elif isinstance(record.command, Done | Later) and record.command.id > after:
            records[place] = replace(record, command=replace(record.command, id=record.command.id + by))


def swap(records: list[Record], random: Random) -> None:
    """Two clients get each other's job, of the same queue."""
    one = _choose(records, random, _handed)
    first = records[one].handed
    assert first is not None
    other = _choose(records, random, lambda record: (
        record.handed is not None and record.handed.queue == first.queue and record.handed.body != first.body
    ))
    second = records[other].handed
    assert second is not None
    records[one] = replace(records[one], handed=replace(second, id=first.id))
    records[other] = replace(records[other], handed=replace(first, id=second.id))


def duplicate_id(records: list[Record], random: Random) -> None:
    """Give one hand-out the id of another one."""
    one, other = _choose(records, random, _handed), _choose(records, random, _handed)
    while one == other:
        other = _choose(records, random, _handed)
    first, second = records[one].handed, records[other].handed
    assert first is not None
    assert second is not None
    records[other] = replace(records[other], handed=replace(second, id=first.id))


def lower_id(records: list[Record], random: Random) -> None:
    """Assign smaller ids, as a server does that forgot its position."""
    number = _choose(records, random, _handed)
    top = max(record.handed.id for record in records if record.handed is not None)
    for place in range(number, len(records)):
        record = records[place]
        if record.handed is not None:
            records[place] = replace(record, handed=replace(record.handed, id=3 * top - record.handed.id))
        elif isinstance(record.command, Done | Later):
            records[place] = replace(record, command=replace(record.command, id=3 * top - record.command.id))


def again(records: list[Record], random: Random) -> None:
    """Hand out a job again that was done, later."""
    number = _choose(records, random, lambda record: isinstance(record.command, Done) and _acted(record))
    done = records[number]
    given = next(record for record in records if record.handed is not None and record.handed.id == _id(done))
    top = max(record.handed.id for record in records if record.handed is not None)
    end_ns = max(record.end_ns or 0 for record in records)
    assert given.handed is not None
    later = replace(given, start_ns=end_ns + 1, end_ns=end_ns + 2, handed=replace(given.handed, id=top + 1))
    records.append(later)


def done_twice(records: list[Record], random: Random) -> None:
    """Acknowledge a DONE to two clients."""
    number = _choose(records, random, lambda record: isinstance(record.command, Done) and _acted(record))
    records.append(replace(records[number], client="another"))


def share(records: list[Record], random: Random) -> None:
    """Hand out a job to a second client at the same time."""
    number = _choose(records, random, lambda record: isinstance(record.command, Done) and _acted(record))
    given = next(record for record in records if record.handed is not None and record.handed.id == _id(records[number]))
    assert given.handed is not None
    assert given.end_ns is not None
    _shift(records, given.handed.id, 1)
    records.append(replace(given, client="another", handed=replace(given.handed, id=given.handed.id + 1)))


def miss(records: list[Record], random: Random) -> None:
    """Let a DONE not find its job."""
    number = _choose(records, random, lambda record: isinstance(record.command, Done) and _acted(record))
    records[number] = replace(records[number], missing=True, finished=None)


def _flip(queue: bool) -> Mutant:
    def flip(records: list[Record], random: Random) -> None:
        number = _choose(records, random, lambda record: record.finished is not None)
        said = records[number].finished
        assert said is not None
        turned = Finished(said.queue_done is not queue, said.item_done is queue)
        records[number] = replace(records[number], finished=turned)
    return flip


def refuse(records: list[Record], random: Random) -> None:
    """Answer a PUT with `500` and still execute it."""
    number = _choose(records, random, lambda record: isinstance(record.command, Put) and _acted(record))
    records[number] = replace(records[number], outcome=Outcome.NOT_EXECUTED)


def alter(records: list[Record], random: Random) -> None:
    """Change the priority of a job that is handed out."""
    number = _choose(records, random, _handed)
    handed = records[number].handed
    assert handed is not None
    records[number] = replace(records[number], handed=replace(handed, priority=handed.priority + 1))


def empty(records: list[Record], random: Random) -> None:
    """Answer a GET that there is nothing, right before another client gets a job that waited for long."""
    puts = {record.command.body: record for record in records if isinstance(record.command, Put) and _acted(record)}
    seen: set[str] = set()
    first = []
    for record in sorted(records, key=lambda record: record.start_ns):
        if record.handed is not None and record.handed.body not in seen:
            seen.add(record.handed.body)
            put = puts.get(record.handed.body)
            if put is not None and put.end_ns is not None and put.end_ns + 3 < record.start_ns:
                first.append(record)
    given = random.choice(first)
    assert given.handed is not None
    get = Get((given.handed.queue,))
    records.append(Record("another", get, given.start_ns - 2, given.start_ns - 1, Outcome.OK, given.server))


def shorten(records: list[Record], random: Random) -> None:
    """End all leases three times as soon as they should."""
    for place, record in enumerate(records):
        if isinstance(record.command, Get) and record.command.expire_ms is not None:
            records[place] = replace(record, command=replace(record.command, expire_ms=record.command.expire_ms * 3))


def overtake(records: list[Record], random: Random) -> None:
    """Hand out a job before an urgent one that came earlier; the servers took that for a minor one."""
    number = _choose(records, random, lambda record: isinstance(record.command, Put) and record.command.priority == 0)
    put = records[number].command
    assert isinstance(put, Put)
    records[number] = replace(records[number], command=replace(put, priority=9))
    for place, record in enumerate(records):
        if record.handed is not None and record.handed.body == put.body:
            records[place] = replace(record, handed=replace(record.handed, priority=9))


MUTANTS_OF: dict[Mutant, set[str]] = {
    lose: {"lost", "order"},
    swap: {"order", "lease", "done", "dedupe", "invented"},
    duplicate_id: {"ids"},
    lower_id: {"ids"},
    again: {"done", "dedupe"},
    done_twice: {"done", "dedupe"},
    share: {"lease", "dedupe"},
    miss: {"done", "dedupe"},
    refuse: {"refused"},
    alter: {"invented"},
    empty: {"order"},
    shorten: {"lease", "dedupe"},
    overtake: {"order"},
}


def _found(mutant: Mutant, rules: set[str], facts_of: Callable[[Facts], Facts] = lambda facts: facts) -> int:
    """Return in how many of the mutants a violation is found."""
    found = 0
    for seed in range(MUTANTS):
        history, facts = known(seed % SEEDS, WORLDS[("usual", "calm", "leases come back")[seed % 3]])
        records = list(history.records)
        mutant(records, Random(seed))
        changed = History()
        changed.records, changed.cuts = records, history.cuts
        found += bool(rules & {violation.rule for violation in check(changed, facts_of(facts))})
    return found


@pytest.mark.parametrize("mutant", MUTANTS_OF, ids=lambda mutant: mutant.__name__)
def test_mutants_are_found(mutant: Mutant) -> None:
    assert _found(mutant, MUTANTS_OF[mutant]) >= MUTANTS // 3


@pytest.mark.parametrize("queue", [True, False], ids=["FINQ", "FINI"])
def test_a_wrong_word_about_the_end_is_found(queue: bool) -> None:
    assert _found(_flip(queue), {"finished"}) >= MUTANTS // 3


@pytest.mark.parametrize("policy", ["order", "sorted", "priority", "place"])
def test_servers_that_choose_the_queue_otherwise_are_found(policy: Policy) -> None:
    found = 0
    for seed in range(SEEDS):
        history, facts = known(seed, Knobs(puts=0.6, policies=("rr", "random")))
        changed = History()
        changed.cuts = history.cuts
        for record in history.records:
            get = record.command
            by = isinstance(get, Get) and get.policy is not None
            changed.records.append(replace(record, command=replace(get, policy=policy)) if by else record)
        rules = {violation.rule for violation in check(changed, facts)}
        assert rules <= {"policy"}
        found += bool(rules)
    assert found >= SEEDS // 3


def test_servers_that_forget_to_wake_are_found() -> None:
    forgetful = Knobs(clients=30, session_clients=0, lost=0, failover_s=0, think_ms=150, blocks=0.95, forgets="c")
    rules = [{violation.rule for violation in check(*true_history(seed, forgetful))} for seed in range(SEEDS)]
    assert all(found <= {"wakeup"} for found in rules)
    assert sum("wakeup" in found for found in rules) >= SEEDS // 3
    mindful = replace(forgetful, forgets="")
    assert not any(check(*true_history(seed, mindful)) for seed in range(SEEDS))


def test_a_leader_that_answers_while_it_is_cut_off_is_found() -> None:
    found = 0
    for seed in range(SEEDS):
        history, facts = known(seed, WORLDS["failovers"])
        changed = History()
        changed.records, changed.cuts = list(history.records), history.cuts
        for cut in history.cuts:
            for number, record in enumerate(changed.records):
                if record.server is not None and cut.start_ns + 2_500_000_000 < record.start_ns < cut.end_ns:
                    changed.records[number] = replace(record, server=cut.node)
        found += "stale" in {violation.rule for violation in check(changed, facts)}
    assert found >= SEEDS // 3
