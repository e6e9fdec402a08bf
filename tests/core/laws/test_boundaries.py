"""Whatever numbers an entry has, the machine continues, and what it writes can be read again."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Change,
    Configure,
    ConfigureQueue,
    Done,
    Due,
    End,
    Get,
    GetWith,
    How,
    Kick,
    Later,
    Machine,
    Move,
    Operation,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Selector,
    Then,
    Tick,
    Touch,
)
from tests.core.helpers.logs import ask, restored, run, snapshot_of

PUT = Put("q", 0, b"")
RUNNING: list[Operation] = [PUT, Get(None)]
SETTINGS = (
    "expire_ms", "tries", "weight", "limit", "item_limit", "capacity", "data_bytes_max", "batch", "portion", "keep_ms"
)


def logs_of(number: int) -> dict[str, list[Operation]]:
    """Return short logs with this number at one place."""
    return {
        "tries": [PutWith(PUT, tries=number), Get(None), Later(1)],
        "every": [PutWith(PUT, every_ms=number), Get(None), Done(1)],
        "every from a late time": [PutWith(PUT, Due(0, 2**64 - 1), every_ms=number, key="k")],
        "every, changed": [PutWith(PUT, every_ms=number), Get(None), Change(Selector(1), when=Due(number)), Done(1)],
        "ttl": [PutWith(PUT, ttl_ms=number)],
        "delay": [PutWith(PUT, Due(number))],
        "at": [PutWith(PUT, Due(0, number))],
        "grace": [Configure(grace_ms=number)],
        "session ttl": [Configure(session_ttl_ms=number)],
        "lease": [PUT, Get(None, number, Then.LATER)],
        "touch": [*RUNNING, Touch(1, number)],
        "count": [PUT, GetWith(Get(None), number)],
        "kick": [*RUNNING, End(1, How.BURY), Kick("q", number)],
        "purge": [PUT, PurgeQueue("q", Purged.ALL, number)],
        "later": [*RUNNING, End(1, How.LATER, Due(number), number)],
        "move": [*RUNNING, Move(1, "p", number, Due(0, number))],
        "change": [*RUNNING, Change(Selector(1), number, Due(number)), Later(1)],
        **{name: [ConfigureQueue("q", QueueChange(**{name: number})), *RUNNING] for name in SETTINGS},
    }


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1, -1, -(2**63), 0])
@pytest.mark.parametrize("name", logs_of(0))
def test_machine_and_its_snapshot_bear_any_number(name: str, number: int) -> None:
    if number >= 2**63 and name in ("later", "move", "change"):
        number = 2**63 - 1          # a priority has 64 bits with its sign
    machine = Machine()
    for operation in logs_of(number)[name]:
        ask(machine, operation, now_ms=1000)
        machine = restored(snapshot_of(machine))
    run(machine, Tick(), now_ms=2**62)
    ask(machine, *[Get(None)] * 3, now_ms=2**62)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
