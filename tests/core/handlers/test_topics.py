"""Limits of the memory for bindings: their number, and the words of their patterns."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    BindQueue,
    ConfigureQueue,
    DeleteQueue,
    Machine,
    QueueChange,
    UnbindQueue,
)
from sockpqd.core import limits as core_limits
from sockpqd.core.ops.replies import TooManyBindings
from tests.core.helpers.logs import ask, restored, snapshot_of

WORDS = 10


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """One whose patterns may have few words."""
    monkeypatch.setattr(core_limits, "PATTERN_WORDS_MAX", WORDS)
    return Machine()


def test_the_patterns_of_all_topics_have_so_many_words(machine: Machine) -> None:
    assert ask(machine, BindQueue("t", "q", "a.b.c.d.e.f"), BindQueue("other", "q", "a.b.c.d")) == [Accepted()] * 2
    assert ask(machine, BindQueue("t", "q", "a")) == [TooManyBindings()]
    assert ask(machine, BindQueue("t", "q", None), BindQueue("t", "q", "a.b.c.d.e.f")) == [Accepted()] * 2
    assert ask(restored(snapshot_of(machine)), BindQueue("t", "q", "a")) == [TooManyBindings()]


@pytest.mark.parametrize("end", [
    UnbindQueue("t", "q", "a.b.c.d.e.f.g.h.i.j"), UnbindQueue("t", None), DeleteQueue("q", force=True),
])
def test_bindings_that_have_gone_leave_room(machine: Machine, end: UnbindQueue | DeleteQueue) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(weight=2)))
    assert ask(machine, BindQueue("t", "q", "a.b.c.d.e.f.g.h.i.j")) == [Accepted()]
    assert ask(machine, BindQueue("t", "q", "#")) == [TooManyBindings()]
    assert ask(machine, end, BindQueue("t", "q", "#")) == [Accepted()] * 2
