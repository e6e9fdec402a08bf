"""Pauses that end by themselves, and the settings that they leave behind."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    ConfigureQueue,
    DeleteQueue,
    Done,
    Empty,
    Get,
    Handed,
    PauseQueue,
    Put,
    QueueChange,
    Tick,
)
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.rules.test_numbers import Cluster


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.do(Put("q", 0, b"a"))
    return cluster


def test_it_ends_by_itself_and_leaves_nothing(cluster: Cluster) -> None:
    assert cluster.do(PauseQueue("q", False, True, 5_000), Get(("q",))) == [Accepted(), Empty(True)]
    due_ms = cluster.machine.next_due_ms()
    assert due_ms is not None
    assert 0 <= due_ms - cluster.now_ms - 5_000 <= 16
    assert cluster.do(Get(("q",)), after_ms=4_999) == [Empty(True)]
    applied = cluster.machine.apply(cluster.machine.index + 1, due_ms, 1, [Tick(), Get(("q",))])
    assert isinstance(applied.replies[1], Handed)
    assert [*applied.effects.reopened] == ["q"]
    assert cluster.machine.queue_settings("q") is None
    assert cluster.machine.next_due_ms() is None
    cluster.now_ms = due_ms
    cluster.do(Done(applied.replies[1].id))
    assert cluster.machine.queue_names("") == []


def test_a_queue_without_jobs_is_gone_with_its_pause(cluster: Cluster) -> None:
    cluster.do(PauseQueue("empty", False, True, 100))
    assert "empty" in cluster.machine.queue_names("")
    cluster.do(Tick(), after_ms=100)
    assert cluster.machine.queue_names("") == ["q"]


def test_settings_of_others_stay(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(limit=3)), PauseQueue("q", False, True, 100))
    cluster.do(Tick(), after_ms=100)
    settings = cluster.machine.queue_settings("q")
    assert settings is not None
    assert (settings.limit, settings.paused_out, settings.pause_ms, settings.pause_ends_ms) == (3, False, 0, 0)


def test_settings_given_meanwhile_stay(cluster: Cluster) -> None:
    cluster.do(PauseQueue("q", False, True, 100), ConfigureQueue("q", QueueChange(limit=3)))
    cluster.do(Tick(), after_ms=100)
    settings = cluster.machine.queue_settings("q")
    assert settings is not None
    assert (settings.limit, settings.paused_out) == (3, False)


RESUME = PauseQueue("q", False, False)


@pytest.mark.parametrize("end", [PauseQueue("q", False, True, 0), RESUME, DeleteQueue("q", True)])
def test_it_is_ended_early(cluster: Cluster, end: PauseQueue | DeleteQueue) -> None:
    cluster.do(PauseQueue("q", False, True, 5_000), end, Put("q", 0, b"b"))
    assert cluster.machine.queue_settings("q") is None
    assert isinstance(cluster.do(Get(("q",)))[0], Handed)
    assert cluster.machine.next_due_ms() is None


def test_the_newest_pause_counts(cluster: Cluster) -> None:
    cluster.do(PauseQueue("q", False, True, 5_000), PauseQueue("q", False, True, 10))
    assert isinstance(cluster.do(Get(("q",)), after_ms=10)[0], Handed)
    cluster.do(Put("q", 0, b"b"), PauseQueue("q", False, True, 10), PauseQueue("q", False, True))
    assert cluster.do(Get(("q",)), after_ms=1_000) == [Empty(True)]
    cluster.do(PauseQueue("q", False, True, 10))
    assert isinstance(cluster.do(Get(("q",)), after_ms=10)[0], Handed)
    assert cluster.machine.queue_settings("q") is not None      # the one without an end was a setting


def test_pauses_are_counted(cluster: Cluster) -> None:
    cluster.do(PauseQueue(
        "q", False, True, 10,
    ), PauseQueue("q", False, True, 0), PauseQueue("q", True, False), PauseQueue("q", True, True))
    assert cluster.machine.history("q", cluster.now_ms).pauses == 3
    figures = dict(cluster.machine.stat("q", cluster.now_ms) or ())
    assert (figures["PAUSED_OUT"], figures["PAUSE_S"], figures["PAUSE_LEFT_S"]) == (1, 0, 0)


def test_what_is_left_is_shown_rounded_up(cluster: Cluster) -> None:
    cluster.do(PauseQueue("q", False, True, 9_500))
    figures = dict(cluster.machine.stat("q", cluster.now_ms + 1_000) or ())
    assert (figures["PAUSE_S"], figures["PAUSE_LEFT_S"]) == (10, 9)


def test_a_snapshot_has_it(cluster: Cluster) -> None:
    cluster.do(PauseQueue("q", False, True, 9_500))
    machine = restored(snapshot_of(cluster.machine))
    assert snapshot_of(machine) == snapshot_of(cluster.machine)
    machine.apply(machine.index + 1, cluster.now_ms + 9_500, 1, [Tick()])
    assert machine.queue_settings("q") is None
