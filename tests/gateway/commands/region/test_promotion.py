"""Tests the answers of a replica, what it says of itself, its promotion, and the fence at its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from sockpqd.core import Fence, Lead, MirrorEntries, MirrorFrame, Promote, Put, RaiseLevel, encode_entry
from sockpqd.gateway.commands.region.replica import UNCONFIGURED
from sockpqd.gateway.replica import OriginSettings, Phase, Puller, PullFigures
from tests.gateway.auth.test_rights_when_told import users
from tests.gateway.helpers.fake_mirror import FakeMirror
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

ORIGIN = b"id of the origin"
REPLICA = "0011223344556677"


async def follow(gateway: MemoryGateway, *entries: list[object]) -> None:
    """Make this cluster a replica that has executed these entries of its origin."""
    now_ms = gateway.cluster.now_ms
    log = [[Lead("o1", 1, ("o1",), ORIGIN, 0)], *entries]
    frames = [
        MirrorFrame(index, encode_entry(now_ms, 0, list(entry)))        # type: ignore[arg-type]
        for index, entry in enumerate(log, start=1)
    ]
    await gateway.cluster._ask(RaiseLevel(2, tuple(gateway.cluster.machine.membership.addresses)))
    await gateway.cluster._ask(MirrorEntries(0, tuple(frames)))
    gateway.cluster._judge()


def test_reads_speak_of_the_mirror_and_all_else_is_offline() -> None:
    async def test(gateway: MemoryGateway) -> None:
        own = gateway.cluster.machine.cluster_id
        await follow(gateway, [Put("q", 3, b"job"), Put("q", 0, b"more")])
        assert await gateway.talk(b"TOTAL q\r\nQUEUE LIST\r\nPEEK q READY COUNT 1\r\n") == (
            b"200 OK 1 2 2 0\r\n200 OK 1\r\nq 2 0 0 0 0\r\n200 OK 1\r\nq - 3 3 READY TRY 0\r\njob")
        assert (await gateway.talk(b"FIND *\r\n")).startswith(b"200 OK 2\r\n")
        assert own is not None
        assert (await gateway.talk(b"CLUSTER ID\r\n")).startswith(b"200 OK " + own[:8].hex().encode())
        for line in (
            b"PUT q 0 1\r\nx\r\n", b"GET q\r\n", b"DONE 1\r\n", b"SESSION\r\n", b"QUEUE PURGE q ALL\r\n",
            b"USER SET ann put " + b"a" * 40 + b"\r\n", b"MAP SET 1 34\r\nCLUSTER main 3031323334353637 h:1\n\r\n",
            b"NOTIFY c 1\r\nx\r\n", b"QUEUE CONFIG q LIMIT 1\r\n",
        ):
            answer = await gateway.talk(line)
            assert answer.startswith(b"500 Offline Mode\r\n"), (line, answer)
    with_gateway(test)


def test_a_promoted_replica_serves_the_jobs_of_its_origin() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await follow(gateway, [Put("q", 3, b"job")])
        assert await gateway.talk(b"CLUSTER PROMOTE GRACE 2.5\r\n") == b"200 OK 2\r\n"
        assert gateway.cluster.operations(Promote) == [Promote(2500)]
        assert await gateway.talk(b"GET q\r\n") == b"200 OK q %d 3 3\r\njob" % (1 + (1 << 32))
        assert await gateway.talk(b"CLUSTER PROMOTE\r\n") == b"409 No Replica\r\n"
    with_gateway(test)


def test_a_copy_says_how_it_follows() -> None:
    async def test(gateway: MemoryGateway) -> None:
        line = b"CLUSTER REPLICA\r\n"
        assert await gateway.talk(line) == b"409 No Replica\r\n"
        await follow(gateway, [Put("q", 3, b"job")])
        told = b"200 OK %s 2 " + ORIGIN[:8].hex().encode() + b" %s %s %s %s\r\n"
        unconfigured = UNCONFIGURED.encode()
        assert await gateway.talk(line) == told % (b"idle", b"-", b"-", b"-", unconfigured)
        puller = Puller(FakeMirror(), OriginSettings((), None, None, None), Path(), lambda: 12.5)
        gateway.hub.puller = puller
        assert await gateway.talk(line) == told % (b"idle", b"-", b"-", b"-", b"-")
        puller.figures = PullFigures(Phase.FOLLOWING, server="10.0.0.1:11361", executed=5, caught_up_at=12.25)
        assert await gateway.talk(line) == told % (b"following", b"5", b"250", b"10.0.0.1:11361", b"-")
        puller.figures = PullFigures(Phase.CONNECTING, "no way:\r\n to \u00fc", executed=5)
        assert await gateway.talk(line) == told % (b"connecting", b"5", b"-", b"-", b"no way: to \\xfc")
        puller.figures.problem = "x" * 10_000
        assert len(await gateway.talk(line)) < 1000
        puller.figures = PullFigures()
        assert await gateway.talk(b"CLUSTER OFFLINE\r\n") == b"200 OK Switched to Offline Mode\r\n"
        assert await gateway.talk(line) == told % (b"stopped", b"-", b"-", b"-", b"-")
        assert await gateway.talk(b"CLUSTER PROMOTE\r\n") == b"200 OK 2\r\n"
        assert await gateway.talk(b"GET q\r\n") == b"200 OK q %d 3 3\r\njob" % (1 + (1 << 32))   # it is online
        assert await gateway.talk(line) == b"409 No Replica\r\n"
    with_gateway(test)


def test_a_fenced_cluster_says_who_took_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.cluster._ask(RaiseLevel(2, tuple(gateway.cluster.machine.membership.addresses)))
        gateway.hub.fencing_replica = REPLICA
        await gateway.talk(f"CLUSTER FENCED {REPLICA}\r\n".encode())
        assert await gateway.talk(b"CLUSTER REPLICA\r\n") == f"409 Fenced {REPLICA}\r\n".encode()
        monkeypatch.setattr(type(gateway.cluster), "is_replica", True)        # it was restarted with replica.of
        assert await gateway.talk(b"CLUSTER REPLICA\r\n") == f"409 Fenced {REPLICA}\r\n".encode()
    with_gateway(test)


def test_every_user_learns_why_nothing_is_executed() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await follow(gateway, [Put("q", 3, b"job")])
        gateway.hub.puller = puller = Puller(FakeMirror(), OriginSettings((), None, None, None), Path(), lambda: 12.5)
        puller.figures = PullFigures(Phase.FOLLOWING, "why", server="10.0.0.1:11361", executed=5, caught_up_at=12.25)
        answers = {}
        for name in ("boss", "ann", "sue"):
            client = gateway.connect(name, name)
            client.send(b"PUT q 0 1\r\nxCLUSTER REPLICA\r\n")
            await gateway.settle()
            answers[name] = client.take()
        told = b"500 Offline Mode\r\n200 OK following 2 " + ORIGIN[:8].hex().encode() + b" 5 250 %s %s\r\n"
        assert answers == {"boss": told % (b"10.0.0.1:11361", b"why"), "ann": told % (b"-", b"-"),
                           "sue": told % (b"-", b"-")}
    with_gateway(test, users=users(boss="admin", ann="put", sue="put,admin:q*"))


def test_the_grace_is_a_minute_unless_it_is_given() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await follow(gateway)
        await gateway.talk(b"CLUSTER PROMOTE\r\n")
        assert gateway.cluster.operations(Promote) == [Promote(60_000)]
    with_gateway(test)


@pytest.mark.parametrize("line", [
    b"CLUSTER PROMOTE now", b"CLUSTER PROMOTE GRACE", b"CLUSTER PROMOTE GRACE x", b"CLUSTER PROMOTE GRACE 1 2",
    b"CLUSTER FENCED", b"CLUSTER FENCED x", b"CLUSTER FENCED 00112233445566778", b"CLUSTER FENCED 0011223344556677 1",
])
def test_bad_lines_change_nothing(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.fencing_replica = REPLICA
        await follow(gateway)
        assert (await gateway.talk(line + b"\r\n")).startswith(b"400 Bad Arguments")
        assert gateway.cluster.operations(Promote) == gateway.cluster.operations(Fence) == []
    with_gateway(test)


def test_a_copy_is_not_fenced_while_it_follows() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.fencing_replica = REPLICA
        await follow(gateway, [Put("q", 3, b"job")])
        line = f"CLUSTER FENCED {REPLICA}\r\n".encode()
        assert await gateway.talk(line) == b"409 Unknown Replica\r\n"
        assert await gateway.talk(b"CLUSTER PROMOTE\r\n") == b"200 OK 2\r\n"
        assert await gateway.talk(line) == b"200 OK\r\n"
    with_gateway(test)


def test_only_the_replica_that_the_file_names_may_fence() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.cluster._ask(RaiseLevel(2, tuple(gateway.cluster.machine.membership.addresses)))
        line = f"CLUSTER FENCED {REPLICA}\r\n".encode()
        assert await gateway.talk(line) == b"409 Unknown Replica\r\n"
        gateway.hub.fencing_replica = "7766554433221100"
        assert await gateway.talk(line) == b"409 Unknown Replica\r\n"
        gateway.hub.fencing_replica = REPLICA
        assert await gateway.talk(line) == b"200 OK\r\n"
        gateway.cluster._judge()
        assert await gateway.talk(b"CLUSTER ONLINE\r\n") == f"409 Fenced {REPLICA}\r\n".encode()
        assert await gateway.talk(b"PUT q 0 1\r\nx\r\n") == b"500 Offline Mode\r\n"
        assert await gateway.talk(b"TOTAL\r\n") == b"200 OK 0 0 0 0\r\n"
    with_gateway(test)
