"""The HTTP port, on a real loop and sockets, in front of the fake cluster."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from sockpqd.core import (
    ConfigureGroup,
    Done,
    Due,
    End,
    Get,
    HoldItem,
    How,
    MirrorEntries,
    Operation,
    PauseQueue,
    Put,
    PutWith,
    SetMap,
)
from sockpqd.core.clusters.cluster_map import ClusterLine, ClusterMap, Moving
from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.monitoring import HttpPages, HttpServer, LoopLag, OwnHosts, Sources, start
from sockpqd.gateway.monitoring import http as http_module
from sockpqd.gateway.monitoring.group_figures import fullest_groups
from sockpqd.gateway.monitoring.map_figures import CLUSTERS_NAMED_MAX, map_figures
from sockpqd.gateway.monitoring.queue_depths import QUEUES_NAMED_MAX, depths
from sockpqd.gateway.monitoring.readiness import LAG_MAX, why_not_ready
from sockpqd.gateway.replica import OriginSettings, Puller
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.server.hub import Hub
from tests.client.certificates import ca_file, server_tls
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.fake_mirror import FakeMirror
from tests.gateway.helpers.sockets import Client, Gateway

PATIENCE_S = 60.0       # far more than anything takes


class Secrets:
    """The users of a node, as the pages see them."""

    known = {"eva": rights.of_text("admin"), "bare": rights.of_text("-"), "max": rights.of_text("put:mail*")}

    async def check(self, user: str, secret: str, peer: str) -> Rights | None:
        assert peer == "127.0.0.1:HTTP"
        if user == "slow":
            await asyncio.sleep(1000)
        return self.known[user] if (user, secret) in (("eva", "pass:word"), ("bare", ""), ("max", "x")) else None


class Watched:
    """A gateway with an HTTP port."""

    def __init__(self, access: Secrets | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.gateway = Gateway()
        self.hub, self.cluster = self.gateway.hub, self.gateway.cluster
        self.tls = tls
        if access is not None:
            self.hub.access.required = True
            self.hub.access.file_users = {name: Account(known, None, None) for name, known in access.known.items()}
        self.lag = LoopLag()
        self.lost = 0
        sources = Sources(self.hub, "1.2.3", self.lag, lambda: self.lost, lambda: [("tls.cert", 1.8e9)])
        self.pages = HttpPages(sources, access)

    async def __aenter__(self) -> Watched:
        await self.gateway.start()
        self.lag.start()
        self.http: HttpServer = await start(
            self.gateway.doors, "127.0.0.1", 0, self.tls, self.pages, self.hub)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.lag.stop()
        await self.http.close()
        await self.gateway.close()

    async def connect(self, tls: ssl.SSLContext | None = None) -> Client:
        name = "localhost" if tls else None
        return Client(*await asyncio.open_connection(*self.http.address, ssl=tls, server_hostname=name))

    async def ask(self, request: bytes, tls: ssl.SSLContext | None = None) -> bytes:
        """Return everything that is answered to these bytes."""
        client = await self.connect(tls)
        client.send(request)
        try:
            return await client.rest()
        finally:
            client.writer.close()

    async def get(self, path: str, headers: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
        """Request a page; returns its status and body."""
        answer = await self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode(), tls)
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert "\r\nServer: sockpqd\r\n" in head
        assert "Connection: close" in head
        return int(head.split()[1]), body

    async def samples(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Return the metrics, by name and values of labels."""
        status, body = await self.get("/metrics")
        assert status == 200
        found = {}
        for family in text_string_to_metric_families(body):
            assert family.documentation.endswith(".")
            for sample in family.samples:
                key = sample.name, tuple(sample.labels.values())
                assert key not in found
                found[key] = sample.value
        return found


def run(test: Callable[[Watched], Awaitable[None]], access: Secrets | None = None,
        tls: ssl.SSLContext | None = None) -> None:
    async def around() -> None:
        async with Watched(access, tls) as watched:
            await test(watched)

    uvloop.run(asyncio.wait_for(around(), 3 * PATIENCE_S))


# ---- pages


def test_there_are_these_pages_and_no_others() -> None:
    async def test(watched: Watched) -> None:
        assert await watched.get("/healthz") == (200, "ok\n")
        assert await watched.get("/readyz") == (200, "ready\n")
        assert (await watched.get("/metrics"))[0] == 200
        for path in ("/", "/metrics/", "/healthz/x", "//healthz", "/../etc/passwd", "/%2e%2e/etc/passwd"):
            assert await watched.get(path) == (404, "not found\n")
        assert (await watched.ask(b"POST /healthz HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 3\r\n\r\nabc"))[:12] == (
            b"HTTP/1.1 405")
        assert (await watched.ask(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")).endswith(b"\r\n\r\n")

    run(test)


def test_readyz_says_why_not() -> None:
    async def test(watched: Watched) -> None:
        cluster = watched.cluster
        cluster.follow("n2")
        assert await watched.get("/readyz") == (200, "ready\n")
        cluster.follow("n3")                    # silent
        assert await watched.get("/readyz") == (503, "n3 leads, but does not serve\n")
        cluster.follow(None)
        assert await watched.get("/readyz") == (503, "no leader is known\n")
        assert (await watched.get("/healthz"))[0] == 200

    run(test)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda cluster: None, None),
        (lambda cluster: setattr(cluster, "lag", LAG_MAX + 1), None),       # a leader has no lag to wait for
        (lambda cluster: setattr(cluster, "online", False),
         "this node is stopping, or switched offline (pqctl node online n1)"),
        (lambda cluster: setattr(cluster, "serving", False), "this node leads, but does not serve: "
         "it has begun just now, or disks are full"),
        (lambda cluster: cluster.follow("n2"), None),
        (lambda cluster: (cluster.follow("n2"), setattr(cluster, "lag", LAG_MAX)), None),
        (lambda cluster: (cluster.follow("n2"), setattr(cluster, "lag", LAG_MAX + 1)),
         f"this node is {LAG_MAX + 1} entries behind n2"),
    ],
)
def test_readiness_in_every_state(prepare: Callable[[FakeCluster], object], reason: str | None) -> None:
    async def test() -> None:
        hub = Hub(Limits(), Path("unused"), offline_close=True, shut_down=lambda reason: None)
        cluster = FakeCluster()
        hub.attach(cluster)
        cluster.start(hub)
        prepare(cluster)
        assert why_not_ready(cluster) == reason

    uvloop.run(test())


def test_the_leader_of_a_replica_is_ready_while_it_is_in_contact() -> None:
    async def test() -> None:
        hub = Hub(Limits(), Path("unused"), offline_close=True, shut_down=lambda reason: None)
        cluster = FakeCluster()
        hub.attach(cluster)
        cluster.start(hub)
        cluster.machine.apply(cluster.machine.index + 1, 0, 0, [MirrorEntries(0, ())])
        cluster._judge()
        assert not cluster.serving
        assert why_not_ready(cluster) is None
        cluster.silence_s = 3.0
        assert why_not_ready(cluster) is not None

    uvloop.run(test())


@pytest.mark.parametrize("leader", ["n1", "n2"])
def test_the_nodes_of_a_replica_that_was_stopped_are_ready(leader: str) -> None:
    async def test(watched: Watched) -> None:
        cluster = watched.cluster
        await cluster.switch_service(False)
        cluster.follow(leader)
        cluster.machine.apply(cluster.machine.index + 1, 0, 0, [MirrorEntries(0, ())])
        assert cluster.is_replica
        assert not cluster.machine.online
        assert await watched.get("/readyz") == (200, "ready\n")

    run(test)


def test_a_node_is_not_ready_while_the_service_is_switched_offline() -> None:
    async def test(watched: Watched) -> None:
        await watched.cluster.switch_service(False)
        assert await watched.get("/readyz") == (503, "the service is switched offline (pqctl cluster online)\n")

    run(test)


# ---- metrics


def test_a_feed_is_counted_where_it_is_read_and_where_it_is_sent(tmp_path: Path) -> None:
    async def test(watched: Watched) -> None:
        found = await watched.samples()
        assert found["sockpqd_feeds", ()] == 0
        assert not [name for name, _ in found if name.startswith("sockpqd_replica")]
        mirror = FakeMirror()
        origin = OriginSettings((watched.gateway.address,), None, None, None)
        puller = watched.hub.puller = Puller(mirror, origin, tmp_path / "origin", asyncio.get_running_loop().time)
        found = await watched.samples()
        assert found["sockpqd_replica_phase", ("idle",)] == 1
        assert ("sockpqd_replica_lag_seconds", ()) not in found
        puller.start()
        await watched.gateway.until(lambda: mirror.index > 0 and puller.figures.caught_up_at is not None)
        found = await watched.samples()
        assert (found["sockpqd_feeds", ()], found["sockpqd_feed_entries_total", ()]) == (1, 1)
        assert found["sockpqd_feed_bytes_total", ()] > found["sockpqd_replica_bytes_total", ()] > 0
        assert found["sockpqd_replica_entries_total", ()] == 1
        assert found["sockpqd_replica_phase", ("following",)] == 1
        assert found["sockpqd_replica_lag_entries", ()] == 0
        assert found["sockpqd_replica_lag_seconds", ()] >= 0
        await puller.stop()

    run(test)


def test_counters_move_as_commands_are_sent() -> None:
    async def test(watched: Watched) -> None:
        before = await watched.samples()
        client = await watched.gateway.connect()
        client.send(b"SESSION\r\nREQ 1 PUT a 0 1\r\nxPUT a 0 1\r\nyPUT b 0 1\r\nzGET b BOUND\r\nDONE 99\r\nNONSENSE\r\n"
                    b"PING\r\n")
        answers = [await client.line() for _ in range(4)] + [(await client.line()) + await client.exactly(1)]
        answers += [await client.line() for _ in range(3)]
        assert [answer[:3] for answer in answers] == [b"200"] * 5 + [b"404", b"400", b"200"]
        client.send(b"GETB none\r\n")
        while not len(watched.hub.job_waiters):
            await asyncio.sleep(0.001)
        after = await watched.samples()
        moved = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
        expected = {
            ("sockpqd_commands_total", ("PUT",)): 3, ("sockpqd_commands_total", ("GET",)): 1,
            ("sockpqd_commands_total", ("DONE",)): 1, ("sockpqd_commands_total", ("PING",)): 1,
            ("sockpqd_commands_total", ("SESSION",)): 1, ("sockpqd_commands_total", ("GETB",)): 1,
            ("sockpqd_errors_total", ("404",)): 1, ("sockpqd_errors_total", ("400",)): 1,
            ("sockpqd_jobs", ("a", "waiting")): 2, ("sockpqd_jobs", ("b", "running")): 1,
            ("sockpqd_jobs_put_total", ("a",)): 2, ("sockpqd_jobs_put_total", ("b",)): 1,
            ("sockpqd_jobs_taken_total", ("b",)): 1,
            ("sockpqd_queues", ()): 2, ("sockpqd_sessions", ()): 1, ("sockpqd_waiters", ()): 1,
            ("sockpqd_connections", ()): 1, ("sockpqd_connections_accepted_total", ()): 1,
        }
        counted = ("sockpqd_commands", "sockpqd_errors", "sockpqd_jobs", "sockpqd_queues", "sockpqd_sessions",
                   "sockpqd_waiters", "sockpqd_connections")
        assert {key: value for key, value in moved.items() if key[0].startswith(counted)} == expected

    run(test)


def test_who_waits_for_the_end_of_a_job_is_counted() -> None:
    async def test(watched: Watched) -> None:
        client = await watched.gateway.connect()
        client.send(b"PUT a 0 1 KEY k\r\nxAWAIT KEY a k\r\n")
        while not len(watched.hub.end_waiters):
            await asyncio.sleep(0.001)
        samples = await watched.samples()
        assert (samples["sockpqd_awaiting", ()], samples["sockpqd_waiters", ()]) == (1, 0)

    run(test)


def test_what_is_refused_is_counted() -> None:
    async def test(watched: Watched) -> None:
        client = await watched.gateway.connect()
        watched.cluster.full = True
        client.send(b"PUT a 0 1\r\nx")
        assert await client.line() == b"503 Busy\r\n"
        watched.cluster.follow("n2")
        client.send(b"PUT a 0 1\r\nx")
        assert await client.rest() == b"500 Offline Mode\r\n"
        client = await watched.gateway.connect()
        client.send(b"x" * 100_000 + b"\r\n")
        assert await client.rest() == b"400 Bad Command\r\n"
        found = await watched.samples()
        assert [found["sockpqd_errors_total", (code,)] for code in ("400", "500", "503", "504")] == [1, 1, 1, 0]

    run(test)


def test_what_others_know_is_shown() -> None:
    async def test(watched: Watched) -> None:
        watched.lost = 3
        found = await watched.samples()
        assert found["sockpqd_build_info", ("1.2.3",)] == 1
        assert found["sockpqd_certificate_expiry_seconds", ("tls.cert",)] == 1.8e9
        assert found["sockpqd_log_lines_lost_total", ()] == 3
        assert found["sockpqd_clock_ahead_seconds", ()] == 0
        assert ("sockpqd_time_ahead_seconds", ()) not in found      # not known
        assert found["sockpqd_peer_up", ("n2",)] == 1
        assert found["sockpqd_peer_up", ("n3",)] == 0
        assert ("sockpqd_peer_lag_entries", ("n3",)) not in found
        assert [found["sockpqd_role", (role,)] for role in ("LEADER", "FOLLOWER")] == [1, 0]
        watched.cluster.figures().commit_latency.observe(0.1)

    run(test)


def test_the_place_in_the_map_is_shown() -> None:
    async def test(watched: Watched) -> None:
        found = await watched.samples()
        own = (watched.cluster.machine.cluster_id or b"")[:8].hex()
        assert found["sockpqd_cluster_info", (own, "-")] == 1       # by id and name
        assert found["sockpqd_map_version", ()] == 0
        assert not [key for key in found if key[0] in ("sockpqd_map_prefixes", "sockpqd_map_moving")]
        text = (f"CLUSTER a {'f' * 16} a:1\nCLUSTER b {own} b:1\nRULE film. b\n"
                "RULE new. -\nRULE old. b\nMOVING old. b a\nMOVING odd. b a\n")
        watched.cluster.machine.apply(1_000_000, watched.cluster.now_ms, 1, [SetMap(7, text.encode())])
        found = await watched.samples()
        assert found["sockpqd_cluster_info", (own, "b")] == 1
        assert found["sockpqd_map_version", ()] == 7
        assert {key[1]: value for key, value in found.items() if key[0] == "sockpqd_map_prefixes"} == {
            ("a",): 2, ("b",): 1, ("-",): 1}
        assert {key[1]: value for key, value in found.items() if key[0] == "sockpqd_map_moving"} == {
            ("a",): 0, ("b",): 2}

    run(test)


def test_the_clusters_beyond_a_number_are_counted_together() -> None:
    names = [f"c{number}" for number in range(CLUSTERS_NAMED_MAX + 2)]
    clusters = [ClusterLine(name, bytes(7) + bytes([number]), ("a:1",)) for number, name in enumerate(names)]
    rules = {f"{name}.": name for name in names}
    moving = {"x.": Moving(names[-1], names[-2]), "y.": Moving(names[0], names[1])}
    figures = map_figures(None, ClusterMap(3, b"", None, clusters, rules, moving, ()))
    assert (figures.own, figures.id, figures.version) == ("-", "-", 3)
    assert (figures.prefixes["c0"], figures.prefixes["c1"], figures.prefixes[""], figures.prefixes["-"]) == (1, 2, 3, 0)
    assert (figures.moving["c0"], figures.moving[""]) == (1, 1)
    assert len(figures.prefixes) == CLUSTERS_NAMED_MAX + 2
    assert len(figures.moving) == CLUSTERS_NAMED_MAX + 1


def test_the_number_of_series_is_bounded_and_the_sums_are_right() -> None:
    async def test(watched: Watched) -> None:
        before = len(await watched.samples())
        put = [Put(f"q{number}", 0, b"") for number in range(3000) for _ in range(1 + number // 1000)]
        watched.cluster.machine.apply(1_000_000, watched.cluster.now_ms, 1, put)
        found = await watched.samples()
        assert len(found) == before + (5 + 8) * QUEUES_NAMED_MAX
        waiting = {labels[0]: value for (name, labels), value in found.items()
                   if name == "sockpqd_jobs" and labels[1] == "waiting"}
        assert sum(waiting.values()) == len(put)
        assert {value for name, value in waiting.items() if name} == {3}       # the fullest are named

    run(test)


def test_every_state_is_counted_and_the_others_are_the_rest() -> None:
    async def test(watched: Watched) -> None:
        later, soon = Due(3_600_000), Put("dead", 0, b"")
        names = [f"q{number}" for number in range(QUEUES_NAMED_MAX + 20)]
        operations: list[Operation] = []
        for name in names:
            operations += [PutWith(Put(name, 0, b""), later), PutWith(Put(name, 0, b""), later), Put(name, 0, b"")]
            operations += [Get((name,)), Put(name, 0, b""), Put(name, 0, b"")]
        operations += [soon, Get(("dead",)), soon, Get(("dead",))]
        operations += [*[Put("paused", 0, b"")] * 3, PauseQueue("paused", False, True)]
        machine = watched.cluster.machine
        machine.apply(1_000_000, watched.cluster.now_ms, 1, operations)
        machine.apply(1_000_001, watched.cluster.now_ms, 1, [
            End(machine.next_id - 1, How.BURY), End(machine.next_id - 2, How.BURY, here=True),
        ])
        found = await watched.samples()
        jobs = {labels: value for (name, labels), value in found.items() if name == "sockpqd_jobs"}
        sums = {state: sum(value for (_, of), value in jobs.items() if of == state)
                for state in ("waiting", "delayed", "running", "dead", "buried")}
        assert sums == {"waiting": 2 * 120 + 3 + 1, "delayed": 2 * 120, "running": 120, "dead": 1, "buried": 1}
        assert jobs["paused", "waiting"] == 3               # though nobody would get them now
        assert jobs["", "delayed"] == 2 * 21                # 99 of the others have a name
        assert jobs["", "waiting"] == 2 * 21 + 1            # the dead queue has none either

    run(test)


def test_what_has_happened_in_a_queue_is_told() -> None:
    async def test(watched: Watched) -> None:
        machine, now_ms = watched.cluster.machine, watched.cluster.now_ms
        puts = [Put("q", 0, b"")] * 3
        machine.apply(1_000_000, now_ms, 1, [*puts, Get(("q",)), Get(("q",)), Done(1), Put("r", 0, b"")])
        watched.cluster.now_ms += 2500              # nothing is applied meanwhile
        found = await watched.samples()
        events = ("put", "taken", "done", "later", "expired", "dead", "ttl")
        assert [found[f"sockpqd_jobs_{event}_total", ("q",)] for event in events] == [3, 2, 1, 0, 0, 0, 0]
        assert found["sockpqd_oldest_ready_seconds", ("q",)] == 2.5
        assert ("sockpqd_jobs_put_total", ("",)) not in found       # who the others are changes: it is no counter

    run(test)


def test_levels_and_groups_of_fair_are_shown() -> None:
    async def test(watched: Watched) -> None:
        names = ("fair_time_seconds_total", "fair_choices_total", "fair_waiting_groups")
        found = await watched.samples()
        for name in names:
            assert [found[f"sockpqd_{name}", (str(level),)] for level in range(5)] == [0] * 5
        assert found["sockpqd_fair_groups", ()] == 0
        client = await watched.gateway.connect()
        client.send(b"PUT q 0 1 GROUP a\r\nxPUT q 0 1 GROUP a\r\nyPUT q 0 1 GROUP b\r\nzPUT r 0 1\r\nw")
        client.send(b"GET q BY FAIR\r\nLATER 1 RAN 2.5\r\nGET q BY FAIR\r\nDONE 2 RAN 0.25\r\n")
        answers = [await client.line() for _ in range(4)]
        answers += [(await client.line()) + await client.exactly(1), await client.line()]
        answers += [(await client.line()) + await client.exactly(1), await client.line()]
        assert [answer[-1:] for answer in (answers[4], answers[6])] == [b"x", b"z"]
        found = await watched.samples()
        shown = {name: [found[f"sockpqd_{name}", (str(level),)] for level in range(5)] for name in names}
        assert shown == {
            "fair_time_seconds_total": [1.25, 1.5, 0, 0, 0],
            "fair_choices_total": [2, 0, 0, 0, 0],
            "fair_waiting_groups": [1, 1, 0, 0, 0],
        }
        assert found["sockpqd_fair_groups", ()] == 2        # a and r; b has no job any more
        before = len(found)
        put = [PutWith(Put("q", 0, b""), group=f"group_{number}") for number in range(2000)]
        watched.cluster.machine.apply(1_000_000, watched.cluster.now_ms, 1, put)
        found = await watched.samples()
        assert len(found) == before
        assert found["sockpqd_fair_groups", ()] == found["sockpqd_fair_waiting_groups", ("0",)] + 1 == 2002

    run(test)


def test_groups_with_settings_and_items_are_shown() -> None:
    async def test(watched: Watched) -> None:
        found = await watched.samples()
        assert (found["sockpqd_groups_with_settings", ()], found["sockpqd_items", ()]) == (0, 0)
        machine = watched.cluster.machine
        machine.apply(1_000_000, watched.cluster.now_ms, 1, [
            ConfigureGroup("a", limit=5, rate=10, per_ms=500, weight=3), ConfigureGroup("b", paused=True),
            PutWith(Put("q", 0, b"", "i"), group="a"), PutWith(Put("q", 0, b""), group="c"), HoldItem("j", 1000),
        ])
        found = await watched.samples()
        shown = {(name.removeprefix("sockpqd_group_"), labels): value for (name, labels), value in found.items()
                 if name.startswith("sockpqd_group_")}
        assert shown == {
            ("jobs", ("a", "ready")): 1, ("jobs", ("a", "delayed")): 0, ("jobs", ("a", "running")): 0,
            ("jobs", ("b", "ready")): 0, ("jobs", ("b", "delayed")): 0, ("jobs", ("b", "running")): 0,
            ("limit", ("a",)): 5, ("limit", ("b",)): 0, ("rate", ("a",)): 20, ("rate", ("b",)): 0,
            ("weight", ("a",)): 3, ("weight", ("b",)): 1, ("paused", ("a",)): 0, ("paused", ("b",)): 1,
        }
        assert found["sockpqd_groups_with_settings", ()] == 2
        assert (found["sockpqd_items", ()], found["sockpqd_items_held", ()]) == (2, 1)
        machine.apply(1_000_001, watched.cluster.now_ms, 1, [
            *(ConfigureGroup(f"g{number}", limit=1) for number in range(2000)),
            *(PutWith(Put("q", 0, b""), group=f"g{number}") for number in range(1900, 2000)),
        ])
        assert {name for name, _ in await fullest_groups(watched.cluster, ("",))} == {
            f"g{number}" for number in range(1900, 2000)}          # a has as many jobs, and the least name
        assert [name for name, _ in await fullest_groups(watched.cluster, ("b",))] == ["b"]
        assert await fullest_groups(watched.cluster, ()) == []

    run(test)


def test_queues_are_looked_at_in_pieces() -> None:
    async def test(watched: Watched) -> None:
        put = [Put(f"q{number}", 0, b"") for number in range(5000)]
        watched.cluster.machine.apply(1_000_000, watched.cluster.now_ms, 1, put)
        turns = 0
        work = asyncio.ensure_future(depths(watched.cluster, ("",)))
        while not work.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 5

    run(test)


# ---- who may

def basic(user: str) -> str:
    return f"Authorization: Basic {base64.b64encode(user.encode()).decode()}\r\n"


def test_metrics_need_a_user_when_there_are_users() -> None:
    async def test(watched: Watched) -> None:
        for path in ("/healthz", "/readyz"):
            assert (await watched.get(path))[0] == 200
        assert (await watched.get("/metrics", basic("eva:pass:word")))[0] == 200
        assert (await watched.get("/metrics", basic("eva:pass:word").replace("Basic", "basic")))[0] == 200
        for headers in ("", basic("eva:wrong"), basic("eva"), basic("bare"), basic(""), "Authorization: Basic\r\n",
                        "Authorization: Basic ?\r\n", "Authorization: Basic /w==\r\n", "Authorization: Bearer x\r\n"):
            assert await watched.get("/metrics", headers) == (401, "user and secret required\n")
        answer = await watched.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b'WWW-Authenticate: Basic realm="sockpqd"' in answer

    run(test, Secrets())


def test_metrics_name_the_queues_that_the_user_may_see() -> None:
    async def test(watched: Watched) -> None:
        put = [Put(queue, 0, b"") for queue in ("mail1", "mail2", "print", "print")]
        watched.cluster.machine.apply(1_000_000, watched.cluster.now_ms, 1, put)
        for user, seen in (("eva:pass:word", {"mail1": 1, "mail2": 1, "print": 2, "": 0}),
                           ("max:x", {"mail1": 1, "mail2": 1, "": 2}), ("bare:", {"": 4})):
            status, body = await watched.get("/metrics", basic(user))
            assert status == 200
            jobs = [sample for family in text_string_to_metric_families(body) if family.name == "sockpqd_jobs"
                    for sample in family.samples if sample.labels["state"] == "waiting"]
            assert {sample.labels["queue"]: sample.value for sample in jobs} == seen

    run(test, Secrets())


def test_with_a_context_it_speaks_https_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = server_tls("localhost")
    trusting = ssl.create_default_context(cafile=ca_file(tmp_path))

    async def test(watched: Watched) -> None:
        assert await watched.get("/healthz", tls=trusting) == (200, "ok\n")
        assert (await watched.get("/metrics", tls=trusting))[0] == 200
        assert b"HTTP" not in await watched.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with pytest.raises(ssl.SSLError):
            await watched.get("/healthz", tls=ssl.create_default_context())
        assert await watched.get("/healthz", tls=trusting) == (200, "ok\n")

    run(test, tls=server)
    (line,) = caplog.messages           # the same for all doors with TLS, and rarely
    assert re.fullmatch(r"refused: 127\.0\.0\.1:\d+: it does not speak TLS", line)


def test_a_connection_over_tls_closes_when_it_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTION_S", 3600)
    trusting = ssl.create_default_context(cafile=ca_file(tmp_path))

    async def test(watched: Watched) -> None:
        assert await watched.get("/healthz", tls=trusting) == (200, "ok\n")

    run(test, tls=server_tls("localhost"))


# ---- who does not behave


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(600), b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\n" + b"".join(b"X-%d: 1\r\n" % at for at in range(200)) + b"\r\n",
        b"PUT mail 0 5\r\nhello",
    ],
)
def test_what_is_no_request_is_refused_shortly_and_not_logged(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def test(watched: Watched) -> None:
        client = await watched.connect()
        client.send(data)
        client.writer.write_eof()
        answer = await client.rest()
        client.writer.close()
        assert b"HTTP/1.1 200" not in answer
        assert len(answer) < 500
        assert await watched.get("/healthz") == (200, "ok\n")

    run(test)
    assert not caplog.records


def test_one_connection_gets_one_answer() -> None:
    async def test(watched: Watched) -> None:
        answer = await watched.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        assert answer.count(b"HTTP/1.1 ") == 1

    run(test)


def test_who_is_slow_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTION_S", 0.2)

    async def test(watched: Watched) -> None:
        silent, slow = await watched.connect(), await watched.connect()
        slow.send(b"GET /healthz HTTP/1.1\r\nHost:")
        assert await silent.rest() == b""
        assert b"200" not in await slow.rest()
        silent.writer.close()
        slow.writer.close()
        assert await watched.ask(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\n{basic('slow:x')}\r\n".encode()) == b""

    run(test, Secrets())


def test_too_many_cost_the_oldest_and_not_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 4)
    monkeypatch.setattr(http_module, "CONNECTION_S", 1000)

    async def test(watched: Watched) -> None:
        silent = [await watched.connect() for _ in range(12)]
        for client in silent[:8]:
            assert await client.rest() == b""
        assert await watched.get("/healthz") == (200, "ok\n")
        for client in silent:
            client.writer.close()

    run(test)


class Patient(Secrets):
    """Checks the secret of `slow` when it is allowed to continue."""

    def __init__(self) -> None:
        self.arrived = asyncio.Semaphore(0)
        self.goes_on = asyncio.Event()

    async def check(self, user: str, secret: str, peer: str) -> Rights | None:
        if user != "slow":
            return await super().check(user, secret, peer)
        self.arrived.release()
        await self.goes_on.wait()
        return None


async def two_wait(watched: Watched, access: Patient) -> list[Client]:
    """Return two clients whose pages are being made, the elder first."""
    clients = []
    for _ in range(2):
        clients.append(await watched.connect())
        clients[-1].send(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\n{basic('slow:x')}\r\n".encode())
        await access.arrived.acquire()
    return clients


def test_who_comes_while_too_many_wait_for_pages_does_not_cost_them_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the eldest cut, clients that come faster than pages are made would all go without."""
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(http_module, "CONNECTION_S", 1000)
    access = Patient()

    async def test(watched: Watched) -> None:
        clients = await two_wait(watched, access)
        for _ in range(3):
            assert await watched.get("/metrics", basic("eva:pass:word")) == (503, "too many requests at a time\n")
            assert await watched.get("/healthz") == (200, "ok\n")
            assert await watched.get("/readyz") == (200, "ready\n")
        access.goes_on.set()
        for client in clients:
            assert b"HTTP/1.1 401" in await client.rest()
            client.writer.close()
        assert (await watched.get("/metrics", basic("eva:pass:word")))[0] == 200

    run(test, access)


def test_an_address_with_fewer_requests_takes_the_place_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = iter("aab")
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(http_module, "CONNECTION_S", 1000)
    monkeypatch.setattr(http_module, "address_of", lambda host: next(addresses))
    access = Patient()

    async def test(watched: Watched) -> None:
        first, second = await two_wait(watched, access)
        assert (await watched.get("/metrics", basic("eva:pass:word")))[0] == 200
        assert await second.rest() == b""
        access.goes_on.set()
        assert b"HTTP/1.1 401" in await first.rest()
        first.writer.close()
        second.writer.close()

    run(test, access)


def test_who_does_not_read_a_page_makes_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(http_module, "CONNECTION_S", 1000)
    access = Patient()

    async def test(watched: Watched) -> None:
        first, second = await two_wait(watched, access)
        with monkeypatch.context() as patch:
            patch.setattr(http_module._OneRequest, "unsent_bytes", lambda one: 1)
            assert (await watched.get("/metrics", basic("eva:pass:word")))[0] == 200
        assert await first.rest() == b""
        access.goes_on.set()
        assert b"HTTP/1.1 401" in await second.rest()
        first.writer.close()
        second.writer.close()

    run(test, access)


def test_connections_that_come_at_once_leave_no_slot_taken() -> None:
    """Those that were cut while they were being made kept theirs for ever; with 96 of these nobody was answered."""
    async def test(watched: Watched) -> None:
        for _ in range(3):
            clients = [socket.socket() for _ in range(90)]
            for client in clients:
                client.setblocking(False)
                with suppress(BlockingIOError):
                    client.connect(watched.http.address)
            loop = asyncio.get_running_loop()
            ends = [asyncio.ensure_future(loop.sock_recv(client, 1)) for client in clients]
            ended = 0
            while ended < len(clients) - http_module.CONNECTIONS_MAX:       # which made room for others
                await asyncio.wait([one for one in ends if not one.done()], return_when=asyncio.FIRST_COMPLETED)
                ended = sum(one.done() for one in ends)
            for one in ends:
                one.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            for client in clients:
                client.close()
        while watched.http.places.taken:        # or this test hangs
            await asyncio.sleep(0.01)

    run(test)


def test_an_error_of_ours_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def test(watched: Watched) -> None:
        del watched.cluster.machine
        assert await watched.get("/metrics") == (500, "internal error\n")
        watched.cluster.machine = FakeCluster().machine

    run(test)
    assert "a page failed" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_in_use_is_an_error(host: str) -> None:
    async def test(watched: Watched) -> None:
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            await start(
                    watched.gateway.doors, host, watched.http.address[1], None, watched.pages, watched.hub)

    run(test)


def test_a_foreign_host_is_not_answered_on_any_path() -> None:
    async def test(watched: Watched) -> None:
        for path in ("/metrics", "/healthz", "/readyz", "/events", "/", "/nothing"):
            for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.example", "", "[::1"):
                request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{basic('eva:pass:word')}\r\n"
                assert (await watched.ask(request.encode()))[:12] == b"HTTP/1.1 421", (path, host)
        two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        assert (await watched.ask(two))[9:12] == b"400"
        assert (await watched.ask(b"GET /healthz HTTP/1.0\r\n\r\n"))[9:12] == b"200", "a probe names no host"

    run(test, Secrets())


def test_own_hosts_are_addresses_localhost_and_the_names_given() -> None:
    async def test(watched: Watched) -> None:
        watched.pages._hosts = OwnHosts(("n1", "N1.Example.net"))
        for host in ("10.1.2.3:11363", "[::1]:80", "LOCALHOST", "n1:11363", "n1.example.NET.", "n1.example.net"):
            answer = await watched.ask(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert answer[9:12] == b"200", host
        assert (await watched.ask(b"GET /healthz HTTP/1.1\r\nHost: n2\r\n\r\n"))[9:12] == b"421"

    run(test)
