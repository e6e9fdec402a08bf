"""Replicas that differ are found, and the wrong one leaves service."""

from __future__ import annotations

import logging
import random
import threading

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Context
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.replica_check import Diverged, ReplicaCheck
from sockpqd.cluster.storage import state_hash
from sockpqd.cluster.storage.state_hash import CHECKPOINT_ENTRIES, Chain
from sockpqd.core import Handed, HandedMany, Stored, digests_of
from tests.cluster.helpers.small_cluster import SmallCluster


def chain_of(entries: int, spoil_at: int = 0) -> Chain:
    chain = Chain()
    for index in range(1, entries + 1):
        chain.extend(index, b"other" if index == spoil_at else b"entry", [Stored()])
    return chain


def quorum() -> Quorum:
    """Return three nodes, seen from n3."""
    context = Context("n3", None, None, random.Random())    # type: ignore[arg-type]
    quorum = Quorum(context)
    quorum.change(("n1", "n2", "n3"))
    return quorum


def test_equal_logs_give_equal_chains_and_any_difference_stays_visible() -> None:
    assert chain_of(1000).value == chain_of(1000).value
    assert chain_of(1000).value != chain_of(1000, spoil_at=3).value
    replies = Chain()
    for index in range(1, 1001):
        replies.extend(index, b"entry", [Stored("i1" if index == 7 else None)])
    assert replies.value != chain_of(1000).value


def test_a_job_that_is_handed_out_is_compared_by_its_id_and_length() -> None:
    first, second = [Handed(number, "q", 0, bytes(1 << 20)) for number in (7, 8)]
    assert digests_of([first, HandedMany((first, second)), Stored("i1"), first]) == [
        (7, 1 << 20), [(7, 1 << 20), (8, 1 << 20)], Stored("i1"), (7, 1 << 20),
    ]


def test_a_chain_goes_on_from_a_snapshot() -> None:
    whole, rest = chain_of(1000), Chain()
    rest.start(500, chain_of(500).value)
    for index in range(501, 1001):
        rest.extend(index, b"entry", [Stored()])
    assert rest.value == whole.value
    assert rest.checkpoint() == whole.checkpoint()


def test_checkpoints_are_kept_by_a_snapshot() -> None:
    whole, rest = chain_of(1000), Chain()
    rest.start(1000, whole.value, whole.saved())
    assert [index for index, _ in rest.between(0, 1000)] == [256, 512, 768]
    assert list(rest.between(256, 768)) == list(whole.between(256, 768))
    assert rest.at(512) == chain_of(512).value
    assert rest.at(513) is None
    assert rest.checkpoint() == whole.checkpoint()
    rest.start(7, whole.value)
    assert rest.at(512) is None


def test_checkpoints_are_forgotten_with_the_journal_but_for_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINTS_KEPT", 2)
    chain = chain_of(1200)
    chain.forget_before(512)
    assert [index for index, _ in chain.between(0, 1200)] == [512, 768, 1024]
    chain.forget_before(1200)
    assert list(chain.between(0, 1200)) == [(768, chain_of(768).value), (1024, chain_of(1024).value)]


def test_the_hashes_of_large_entries_are_made_beside_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_hash, "CHECKPOINT_ENTRIES", 4)
    large = limits.BACKGROUND_HASH_BYTES
    entries = [bytes([index]) * (large if index % 3 == 0 else 10) for index in range(1, 60)]
    replies = [[Handed(1, "q", 0, bytes(large))] if index % 7 == 0 else [] for index in range(1, 60)]
    aside, plain = Chain(), Chain()
    for index, (entry, answers) in enumerate(zip(entries, replies, strict=True), 1):
        aside.extend(index, entry, answers)
        assert aside.index == index
    threads = threading.active_count()
    assert aside.value is not None
    assert threads > 1
    monkeypatch.setattr(limits, "BACKGROUND_HASH_BYTES", 1 << 30)
    for index, (entry, answers) in enumerate(zip(entries, replies, strict=True), 1):
        plain.extend(index, entry, answers)
    assert aside.value == plain.value
    assert aside.checkpoint() == plain.checkpoint()
    assert [aside.at(index) for index in range(60)] == [plain.at(index) for index in range(60)]


def test_the_hash_of_a_large_entry_keeps_nobody_waiting_who_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_hash, "CHECKPOINT_ENTRIES", 1)
    go_on, hash_now = threading.Event(), state_hash._hash

    def slow_hash(before: bytes, entry: bytes, answers: bytes) -> bytes:
        if len(entry) > 10:
            go_on.wait(60)
        return hash_now(before, entry, answers)

    monkeypatch.setattr(state_hash, "_hash", slow_hash)
    chain = Chain()
    chain.extend(1, b"small", [])
    chain.extend(2, bytes(limits.BACKGROUND_HASH_BYTES), [])
    chain.extend(3, b"behind", [])
    assert chain.index == 3
    assert chain.checkpoint()[0] == 1                   # what is known; what is behind it comes later
    assert chain.at(2) is None
    go_on.set()
    value = chain.value
    assert chain.checkpoint() == (3, value)
    assert chain.at(2) not in (None, value)


def test_a_chain_that_waits_for_hashes_keeps_a_limited_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HASH_BACKLOG_BYTES_MAX", 3 * limits.BACKGROUND_HASH_BYTES)
    chain = Chain()
    for index in range(1, 40):
        chain.extend(index, bytes(limits.BACKGROUND_HASH_BYTES), [])
        assert sum(len(entry) for _, entry, _ in chain._due) <= 3 * limits.BACKGROUND_HASH_BYTES


def test_a_snapshot_replaces_a_chain_that_still_waits_for_hashes() -> None:
    chain, other = Chain(), Chain()
    chain.extend(1, bytes(limits.BACKGROUND_HASH_BYTES), [])
    for each in (chain, other):
        each.start(7, b"x" * 16)
        each.extend(8, b"entry", [])
    assert chain.value == other.value


def test_who_is_contradicted_by_a_majority_stops_and_who_is_confirmed_does_not() -> None:
    good, bad = chain_of(600), chain_of(600, spoil_at=2)
    index, value = good.checkpoint()
    assert index == 2 * CHECKPOINT_ENTRIES
    wrong = ReplicaCheck(bad, quorum())
    wrong.claimed("n1", index, value)
    with pytest.raises(Diverged, match=f"entry {index}"):
        wrong.claimed("n2", index, value)
    right = ReplicaCheck(good, quorum())
    right.claimed("n1", index, value)
    right.claimed("n3", *bad.checkpoint())


def test_with_one_witness_nobody_is_condemned_but_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    comparison = ReplicaCheck(chain_of(600), quorum())
    with caplog.at_level(logging.ERROR):
        comparison.claimed("n2", *chain_of(600, spoil_at=2).checkpoint())
    assert "differ at entry" in caplog.text


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_replica_that_differs_leaves_service_also_when_it_leads(
    role: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_hash, "CHECKPOINT_ENTRIES", 8)
    world = SmallCluster(3)
    world.put_now()
    victim = world.leader() if role == "leader" else world.followers()[0]
    victim.up.chain._value = bytes(16)          # as if its memory had lied
    for _ in range(30):
        world.put()
        world.run(0.1)
    world.run_until(lambda: victim.failure is not None)
    assert isinstance(victim.failure, Diverged)
    world.put_now(b"the others go on")


def test_chains_agree_after_snapshots_restarts_and_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_hash, "CHECKPOINT_ENTRIES", 8)
    world = SmallCluster(3)
    away = world.followers()[0]
    world.kill(away.name)
    for _ in range(3):
        for _ in range(10):
            world.put_now()
        for node in world:
            if node.driver is not None:
                node.up.replica.compact()
        world.run(0.2)
    world.start(away.name)
    world.run_until(world.settled)
    other = world.followers()[0]
    world.kill(other.name)
    world.start(other.name)
    for _ in range(20):
        world.put_now()
    world.run_until(world.settled)
    world.run(1)
    assert len({node.up.chain.value for node in world}) == 1
    assert all(node.failure is None for node in world)
