"""Laws of the map of clusters: the owner of a name, and that machine and reference model agree while maps change."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import Machine, MapError, Operation, SetMap, read_map
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import CLUSTER, LogEntry, restored, snapshot_of
from tests.core.helpers.session_logs import random_session_log
from tests.core.helpers.time_logs import QUEUES, random_time_log
from tests.core.model import cluster_map as model
from tests.core.model.model import Model

IDS = {"a": CLUSTER[:8].hex(), "b": "00" * 8, "c": "ff" * 8}

names = st.text("ab.", min_size=1, max_size=5).map(lambda name: f"a{name}")
dead_letters = st.integers(0, 2).map(lambda times: "_dead" * times)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return the text of a map whose first cluster is any of them."""
    clusters = draw(st.permutations(list(IDS)))[: draw(st.integers(2, 3))]
    lines = [f"CLUSTER {name} {IDS[name]} {name}.net:11361,[::1]:1" for name in clusters]
    some = st.sampled_from(clusters)
    for prefix in draw(st.sets(names, max_size=6)):
        lines.append(f"RULE {prefix} {draw(some | st.just('-'))}")
    for prefix in draw(st.sets(names, max_size=2)):
        lines.append(" ".join(["MOVING", prefix, *draw(st.permutations(clusters))[:2]]))
    lines += [f"SPREAD {queue}" for queue in draw(st.sets(names, max_size=2))]
    return "".join(f"{line}\n" for line in lines)


@given(texts(), names, dead_letters)
def test_the_longest_prefix_owns_a_name(text: str, name: str, dead: str) -> None:
    for cluster, id_ in IDS.items():
        cluster_id = bytes.fromhex(id_) * 2
        known = read_map(1, text.encode(), cluster_id)
        assert known.owner(name + dead) == model.owner(text, name + dead)
        assert known.own == (cluster if f"CLUSTER {cluster} " in text else None)
        for _ in range(2):              # found, and remembered
            assert known.accepts(name + dead) == model.accepts(text, cluster_id, name + dead)


@given(texts(), names)
def test_one_cluster_accepts_a_name(text: str, name: str) -> None:
    maps = [read_map(1, text.encode(), bytes.fromhex(id_)) for id_ in IDS.values()]
    known, accepting = maps[0], [one.own for one in maps if one.accepts(name)]
    if name in known.spread:
        assert len(accepting) == len(known.clusters)
    else:
        assert accepting == ([] if known.owner(name) is None else [known.owner(name)])


@given(st.lists(st.sampled_from([
    "CLUSTER a 0011223344556677 h:1", "CLUSTER A 0011223344556677 h:1", "CLUSTER b 00112233445566 h:1", "RULE x a",
    "CLUSTER b 0011223344556688 h:0", "CLUSTER c 0011223344556699 h:1,", "RULE x -", "RULE :x a", "RULE  a", "SPREAD q",
    "MOVING x a b", "MOVING x a a", "SPREAD q r", "OTHER", "", "CLUSTER - 0011223344556611 h:1", "RULE \xe4 a",
]), max_size=5))
def test_what_is_no_map_is_refused_with_a_reason(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode("latin-1")
    try:
        known = read_map(1, text, None)
    except MapError as error:
        reason = str(error)
    else:
        reason = "-"
        assert lines.count("CLUSTER a 0011223344556677 h:1") == 1
        assert known.home == "a"
        assert set(lines) <= {"CLUSTER a 0011223344556677 h:1", "RULE x a", "RULE x -", "SPREAD q"}
        assert len(set(lines)) == len(lines)
    assert reason.isascii()
    assert reason.isprintable()


def _text(random: Random) -> str:
    clusters = random.sample(sorted(IDS), random.randrange(2, 4))
    lines = [f"CLUSTER {name} {IDS[name]} h:1" for name in clusters]
    for kind in ("RULE", "MOVING", "SPREAD"):
        for name in random.sample([*QUEUES, "t", "p", "queue_", "queue_1"], random.randrange(3)):
            names = {"RULE": [random.choice([*clusters, "-"])], "MOVING": random.sample(clusters, 2), "SPREAD": []}
            lines.append(" ".join([kind, name, *names[kind]]))
    return "".join(f"{line}\n" for line in lines)


def with_maps(log: list[LogEntry], random: Random) -> list[LogEntry]:
    """Return the log with a new map, or an outdated one, in some of its entries."""
    version = 0
    for entry in log[1:]:
        if random.random() < 0.1:
            version += random.choice([1, 1, 1, 5, 0])
            changed: Operation = SetMap(max(1, version), _text(random).encode())
            entry.operations.insert(random.randrange(len(entry.operations) + 1), changed)
    return log


@pytest.mark.parametrize("seed", range(4))
def test_machine_and_model_agree_while_maps_change(seed: int) -> None:
    random = Random(seed)
    for log in (random_time_log(seed, 200), random_session_log(seed, 200)):
        assert_equal_to_model(with_maps(log, random), Machine(), Model(), every=20)


@given(texts(), st.integers(1, 2**53))
def test_a_snapshot_has_the_map(text: str, version: int) -> None:
    machine = Machine()
    machine.apply(1, 0, 0, [SetMap(version, text.encode())])
    copy = restored(snapshot_of(machine))
    assert copy.cluster_map is not None
    assert (copy.cluster_map.version, copy.cluster_map.text) == (version, text.encode())
    assert snapshot_of(copy) == snapshot_of(machine)
