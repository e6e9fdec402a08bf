"""The map of clusters in the client: it reads maps as servers do, and shows and sets its own cluster's."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from sockpq import Client, ClusterMap, Elsewhere, MapChanged, MappedCluster, Moving
from sockpq._protocol.cluster_map import parse_map
from sockpq.errors import BadArguments

from devcluster.cluster import LocalCluster
from sockpqd.core import MAP_BYTES_MAX, read_map
from tests.core.laws.test_cluster_map_laws import IDS, dead_letters, names, texts


@given(texts(), names, dead_letters)
def test_it_reads_a_map_as_servers_do(text: str, name: str, dead: str) -> None:
    mine, theirs = parse_map(7, text), read_map(7, text.encode(), None)
    assert (mine.home, mine.spread) == (theirs.home, theirs.spread)
    views = [read_map(7, text.encode(), bytes.fromhex(id_)) for id_ in IDS.values()]
    for queue in (f"{one}{dead}" for one in (name, *mine.spread)):
        assert mine.owner(queue) == theirs.owner(queue)
        accepting = {view.own for view in views if view.accepts(queue)}
        assert accepting == (set(mine.clusters) if mine.is_spread(queue) else {mine.owner(queue)} - {None})
    assert parse_map(7, mine.text()) == mine


@pytest.mark.parametrize("line", [
    "", "RULE a", "RULE :a b", "RULE a B", "CLUSTER a 0011 h:1", "CLUSTER - 0011223344556677 h:1", "SPREAD",
    "CLUSTER a 0011223344556677 h:x", "MOVING a b c d", "OTHER a",
])
def test_what_is_no_map_is_refused(line: str) -> None:
    with pytest.raises(BadArguments):
        parse_map(1, f"{line}\n")


def test_map_of_a_cluster() -> None:
    with LocalCluster(1) as cluster, Client(cluster.servers) as client:
        assert client.cluster_map() == ClusterMap()
        id_ = client.cluster_id().id
        assert id_ is not None
        clusters = {
            "main": MappedCluster(id_, (cluster.servers[0],)), "video": MappedCluster("0" * 16, ("[::1]:1", "h:2")),
        }
        first = ClusterMap(3, clusters, {"video.": "video", "now.": None}, {"old": Moving("video", "main")})
        client.set_cluster_map(first)
        client.set_cluster_map(first)
        assert client.cluster_map() == first
        assert client.cluster_id() == (id_, "main")
        with pytest.raises(MapChanged) as changed:
            client.set_cluster_map(first._replace(version=2))
        assert pickle.loads(pickle.dumps(changed.value)).version == 3
        client.put("mail", b"1")
        for name, owner in (("video.in", "video"), ("now.x", None)):
            with Client(cluster.servers, cluster=id_) as only, pytest.raises(Elsewhere) as refusal:
                only.put(name, b"1")
            assert pickle.loads(pickle.dumps(refusal.value)).cluster == owner


@pytest.mark.parametrize("wrong", [
    ClusterMap(1), ClusterMap(0, {"a": MappedCluster("0" * 16, ("h:1",))}),
    ClusterMap(1, {"a": MappedCluster("0" * 16, ("h:1",))}, {f"rule{n}": "a" for n in range(MAP_BYTES_MAX // 13)}),
])
def test_what_cannot_be_a_map_is_not_sent(wrong: ClusterMap) -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(BadArguments):
        client.set_cluster_map(wrong)
