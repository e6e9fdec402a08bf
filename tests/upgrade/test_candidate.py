"""Data directories of 1.0.0rc1, whose log this program does not read: they are read by way of a snapshot.

`data/candidate/stopped.tar.xz` was left as CHANGELOG says (switched offline, CLUSTER SNAPSHOT, stopped), after the node
had led once more; stopped.json says what is in it. `killed.tar.xz` is from a node that was killed under load.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
import sockpq

from devcluster.cluster import LocalCluster, say
from sockpqd.cluster.journal.journal import Journal
from tests.upgrade.directories import DATA, start_in_vain, stopped_node
from tests.upgrade.test_newer import contents
from tests.upgrade.test_upgrade import check_all_is_there, check_it_can_be_used
from tests.waiting import until

FORMAT = 2              # of its entries
TO_DO = (
    r"EntryTooOld: entry \d+ was written by version 1\.0\.0rc1 \(.*\)\. Start that version again on all nodes, say "
    "`pqctl cluster offline`, and `pqctl cluster snapshot` on each; then stop them all and start this version"
)


def test_a_node_that_was_stopped_behind_a_snapshot_goes_on_with_everything() -> None:
    expected = json.loads((DATA / "candidate" / "stopped.json").read_text("utf-8"))
    with stopped_node("candidate/stopped") as cluster, sockpq.Client(cluster.servers) as client:
        newest = max((cluster.data_dir("n1") / "snapshots").glob("snapshot-*"))
        journal = Journal.open(cluster.data_dir("n1") / "journal")
        assert int(newest.name.rpartition("-")[2]) < journal.last_index, "its last leadership stands behind it"
        journal.close()
        cluster.restart("n1")
        until(lambda: (say(cluster.server("n1"), "CLUSTER ONLINE", 5.0) or "").startswith("200"))
        cluster.wait_for_leader()
        check_all_is_there(client, expected)
        cluster.kill("n1")
        cluster.restart("n1")
        cluster.wait_for_leader()
        check_all_is_there(client, expected)
        check_it_can_be_used(client, expected)


def put_behind(data_dir: Path, *, committed: bool) -> None:
    """Continue the log with a Put of that version."""
    journal = Journal.open(data_dir / "journal")
    command, index, term = journal[-1]
    entry = msgspec.msgpack.encode([FORMAT, 1 << 40, 0, [[1, "q", 0, b"x"]]])
    head = bytes(command).index(msgspec.msgpack.encode([FORMAT, 1 << 40, 0, []])[:3])
    journal.add(command[:head - 2] + msgspec.msgpack.encode(entry)[:2] + entry, index + 1, term)
    if committed:
        journal.setRaftCommitIndex(index + 1)
    journal.sync()
    journal.close()


def check_refused(cluster: LocalCluster) -> None:
    before = contents(cluster.data_dir("n1"))
    code, said = start_in_vain(cluster, "n1")
    assert code == 70
    assert re.search(TO_DO, said), said
    assert "newer" not in said
    assert "Traceback" not in said
    assert contents(cluster.data_dir("n1")) == before


def test_a_log_that_goes_on_is_refused_with_what_to_do_and_left_as_it_is() -> None:
    with stopped_node("candidate/killed") as cluster:
        check_refused(cluster)


@pytest.mark.parametrize("committed", [True, False])
def test_so_is_one_entry_even_if_nobody_knows_whether_it_is_committed(*, committed: bool) -> None:
    """Entries of this version after it would make a log that none reads as a whole."""
    with stopped_node("candidate/stopped") as cluster:
        put_behind(cluster.data_dir("n1"), committed=committed)
        check_refused(cluster)
