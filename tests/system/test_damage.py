"""Damaged data directories of real nodes: repaired by the node itself where nothing is lost, else refused with 70."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sockpq

from devcluster.cluster import LocalCluster
from devcluster.node import NodeError
from tests.system.damage_rounds import CONFIG, Rounds
from tests.system.damages import Damage, cut_between_frames, flip_bits, put_back, swap
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.upgrade.directories import DATA, start_in_vain, stopped_node, unpack
from tests.upgrade.test_upgrade import check_all_is_there, description
from tests.waiting import until

NAME = "entry3"             # two snapshots, and the journal behind the older one
SEED = 20240611
GENEROUS_S = 90.0           # on a machine that does a lot else
START_EMPTY = "Stop it, move its data directory away and start it again with an empty one"


def start_refused(cluster: LocalCluster, name: str) -> str:
    """Check that the node does not start; returns its output."""
    code, said = start_in_vain(cluster, name)
    assert code == 70, said
    assert "Traceback" not in said
    assert START_EMPTY in said.splitlines()[-1]
    return said


def flip(path: Path, rng: random.Random) -> None:
    """Flip one bit of what was written."""
    data = path.read_bytes()
    position = rng.randrange(8 * len(data.rstrip(b"\0")))
    with path.open("r+b") as file:
        file.seek(position // 8)
        file.write(bytes([data[position // 8] ^ 1 << position % 8]))


def snapshots(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "snapshots").glob("snapshot-*"))


def segments(data_dir: Path) -> list[Path]:
    """Return the segments that are not empty."""
    return [path for path in sorted((data_dir / "journal").glob("journal-*")) if any(path.read_bytes()[:512])]


@pytest.fixture(scope="module")
def lone() -> Iterator[LocalCluster]:
    """A single node, which is stopped."""
    with stopped_node(NAME) as cluster:
        yield cluster


@pytest.fixture
def data_dir(lone: LocalCluster) -> Iterator[Path]:
    """The node's data directory, repaired."""
    lone.wipe("n1")
    unpack(DATA / f"{NAME}.tar.xz", lone.data_dir("n1"))
    yield lone.data_dir("n1")
    lone.kill("n1")


def newest_snapshot_flipped(data_dir: Path) -> str:
    flip(snapshots(data_dir)[-1], random.Random(SEED))
    return f"snapshot {snapshots(data_dir)[-1]} is damaged: "


def newest_snapshot_cut(data_dir: Path) -> str:
    path = snapshots(data_dir)[-1]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    return f"snapshot {path} is damaged: "


def newest_snapshot_missing(data_dir: Path) -> str:
    snapshots(data_dir)[-1].unlink()
    return ""                   # nobody knows of it, and nothing is lacking: there is nothing to say


@pytest.mark.parametrize("damage", [newest_snapshot_flipped, newest_snapshot_cut, newest_snapshot_missing])
def test_an_older_snapshot_and_the_journal_are_enough(
    damage: Callable[[Path], str], lone: LocalCluster, data_dir: Path,
) -> None:
    said, before = damage(data_dir), len(lone.logs("n1"))
    lone.restart("n1")
    lone.wait_for_leader()
    with sockpq.Client(lone.servers) as client:
        check_all_is_there(client, description(NAME))
    assert said in lone.logs("n1")[before:]


def journal_flipped(seed: int) -> Callable[[Path], str]:
    def damage(data_dir: Path) -> str:
        rng = random.Random(seed)
        path = rng.choice(segments(data_dir))
        flip(path, rng)
        return rf"JournalDamaged: journal {path} is damaged at offset \d+: "
    return damage


def journal_cut(data_dir: Path) -> str:
    path = segments(data_dir)[1]
    with path.open("r+b") as file:
        file.truncate(5 << 20)
    return rf"JournalDamaged: journal {path} is damaged at offset \d+: "


def segment_missing(data_dir: Path) -> str:
    segments(data_dir)[0].unlink()
    return f"JournalDamaged: journal {data_dir}/journal/.* is missing"


def journal_missing(data_dir: Path) -> str:
    newest = snapshots(data_dir)[-1]
    shutil.rmtree(data_dir / "journal")
    return f"SnapshotDamaged: the journal is empty, but {newest} is there"


def both_snapshots_flipped(data_dir: Path) -> str:
    for path in snapshots(data_dir):
        flip(path, random.Random(SEED))
    return f"snapshot {snapshots(data_dir)[-1]} is damaged: .*\n.*\n.*SnapshotDamaged: the journal begins with entry "


def both_snapshots_missing(data_dir: Path) -> str:
    for path in snapshots(data_dir):
        path.unlink()
    return f"SnapshotDamaged: the journal begins with entry .*{data_dir}/snapshots has no sound snapshot"


@pytest.mark.parametrize("damage", [
    journal_flipped(1), journal_flipped(2), journal_flipped(3), journal_cut, segment_missing, journal_missing,
    both_snapshots_flipped, both_snapshots_missing,
])
def test_what_may_lack_something_is_refused(damage: Callable[[Path], str], lone: LocalCluster, data_dir: Path) -> None:
    said = damage(data_dir)
    for _ in range(2 if damage is journal_missing else 1):      # the first start has made a new, empty one
        assert re.search(said, start_refused(lone, "n1"))


def test_a_refused_node_of_three_is_repaired_by_emptying_its_directory() -> None:
    rng = random.Random(SEED)
    with LocalCluster(3, config={"node": {"on_damage": "stop"}}) as cluster:
        producers = [Producer(cluster.servers, f"p{k}") for k in range(2)]
        for producer in producers:
            producer.start()
        wait_for_progress(producers, 200)
        for _ in range(2):
            victim = cluster.wait_for_leader()
            cluster.kill(victim)
            flip(segments(cluster.data_dir(victim))[-1], rng)
            assert str(cluster.data_dir(victim)) in start_refused(cluster, victim)
            wait_for_progress(producers)
            cluster.data_dir(victim).rename(cluster.folder / f"damaged-{rng.random()}")
            before = len(cluster.logs(victim))
            cluster.restart(victim)
            cluster.wait_until_level()
            cluster.wait_until_logged(victim, "this node votes from now on", before)
        for producer in producers:
            producer.finish()
        check(producers, drain(cluster))


@pytest.mark.parametrize("damage", [flip_bits, cut_between_frames, swap, put_back], ids=lambda damage: damage.__name__)
def test_a_damaged_node_of_three_comes_back_by_itself(rounds: Rounds, damage: Damage) -> None:
    rounds.run()                        # has made an older copy, perhaps
    print(rounds.run(damage))


@pytest.fixture(scope="module")
def rounds() -> Iterator[Rounds]:
    """Three nodes; in the end nothing acknowledged is missing."""
    with LocalCluster(3, config=CONFIG) as cluster:
        rounds = Rounds(cluster, random.Random(SEED), at_most_s=GENEROUS_S)
        yield rounds
        rounds.check()
        assert rounds.rejoined


def test_two_damaged_nodes_of_three_stop_and_say_what_to_do() -> None:
    with LocalCluster(3) as cluster:
        with sockpq.Client(cluster.servers) as client:
            client.put_many("kept", [b"%d" % k for k in range(20)])
        for name in cluster.names:
            cluster.kill(name)
        damaged = cluster.names[:2]
        for name in damaged:
            flip(segments(cluster.data_dir(name))[0], random.Random(SEED))
        for name in cluster.names:
            cluster.restart(name, wait=False)
        for name in damaged:
            until(lambda: not cluster.running(name), lambda: cluster.logs(name), 120)       # noqa: B023
            assert cluster.terminate(name) == 70
            said = cluster.logs(name)
            assert "RejoinFailed: this node has set its damaged files aside and found no leader" in said
            assert "docs/OPERATIONS.md says how to go on" in said
            kept = list(cluster.data_dir(name).glob("damaged-*/journal-*"))
            assert kept
        assert cluster.leader() is None


def test_a_node_that_is_damaged_too_often_stops() -> None:
    with LocalCluster(3, config={"node": {"rejoins_per_hour": 1}}) as cluster:
        victim = cluster.names[0]
        for often in range(2):
            cluster.kill(victim)
            flip(segments(cluster.data_dir(victim))[-1], random.Random(SEED))
            before = len(cluster.logs(victim))
            if often:
                said = start_refused(cluster, victim)
                assert "node.rejoins_per_hour = 1" in said
            else:
                cluster.restart(victim)
                cluster.wait_until_logged(victim, "this node votes from now on", before)


def test_a_wiped_node_elects_nobody_before_it_has_caught_up() -> None:
    with LocalCluster(3) as cluster:
        with sockpq.Client(cluster.servers) as client:
            client.put_many("kept", [b"%d" % k for k in range(20)])
        wiped, other, third = cluster.names
        for name in cluster.names:
            cluster.kill(name)
        cluster.wipe(wiped)
        for name in (wiped, other):
            cluster.restart(name)
        with pytest.raises(NodeError, match="no node serves"):
            cluster.wait_for_leader(3.0)            # an election takes a second
        cluster.restart(third)
        cluster.wait_until_level()
        cluster.wait_until_logged(wiped, "this node votes from now on")
        cluster.kill(third)
        assert drain(cluster, "kept") == [b"%d" % k for k in range(20)]
