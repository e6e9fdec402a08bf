"""Groups as tenants: settings, pauses and counts of a group, and the settings of queues that choose by groups."""

from __future__ import annotations

import pytest
from sockpq import BadArguments, Client, GroupConfig, GroupNotFound, GroupTotals, ProtocolError
from sockpq._protocol.commands import groups, queues

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer
from tests.client.test_fair_shares import answered


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def bodies(client: Client, count: int = 10) -> list[bytes]:
    return [job.data for job in client.get_many(count, "q", expire=600)]


def test_lines() -> None:
    change = groups.group_config("shop:7", {"limit": 3, "rate": 100, "per": 0.5})
    assert [one.line for one in change.before] == [b"GROUP CONFIG shop:7 LIMIT 3 RATE 100 PER 0.500\r\n"]
    assert change.last.line == b"GROUP CONFIG shop:7\r\n"
    assert groups.group_config("a", {"weight": 3}).before[0].line == b"GROUP CONFIG a WEIGHT 3\r\n"
    assert groups.group_config("a", {"limit": 0, "rate": 0}).before[0].line == b"GROUP CONFIG a LIMIT 0 RATE OFF\r\n"
    assert groups.group_config("a", {}).before == ()
    assert groups.group_pause("a").line == b"GROUP PAUSE a\r\n"
    assert groups.group_pause("a", seconds=1.5).line == b"GROUP PAUSE a FOR 1.500\r\n"
    assert groups.group_resume("a").line == b"GROUP RESUME a\r\n"
    assert groups.group_delete("q" * 255).line == b"GROUP DELETE " + b"q" * 255 + b"\r\n"
    assert groups.groups().line == b"GROUP LIST\r\n"
    assert groups.groups("shop:").line == b"GROUP LIST shop:*\r\n"
    queue = queues.queue_config("q", {"sched": "groups", "group_limit": 2, "group_rate": 5, "group_per": 1})
    assert queue.before[0].line == b"QUEUE CONFIG q GROUPLIMIT 2 SCHED GROUPS GROUPRATE 5 PER 1\r\n"
    assert queue.before[0].needs == groups.NEEDS
    assert queues.queue_config("q", {"sched": "fair"}).before[0].needs == ()
    for by, word in (("user", b"USER"), ("item", b"ITEM"), ("off", b"OFF"), (("head", "shop"), b"HEAD shop")):
        assert queues.queue_config("q", {"group_by": by}).before[0].line == b"QUEUE CONFIG q GROUPBY %b\r\n" % word
    for order, word in ((True, b"ON"), (False, b"OFF")):
        line = queues.queue_config("q", {"group_order": order}).before[0].line
        assert line == b"QUEUE CONFIG q GROUPORDER %b\r\n" % word
    assert queues.queue_config("q", {"group_rate": 0}).before[0].line == b"QUEUE CONFIG q GROUPRATE OFF\r\n"


def test_what_is_refused_before_it_is_sent() -> None:
    for wrong in (
        lambda: groups.group_config("a b", {}),
        lambda: groups.group_config("a", {"limit": -1}),
        lambda: groups.group_config("a", {"rate": 5}),
        lambda: groups.group_config("a", {"per": 5}),
        lambda: groups.group_config("a", {"rate": 0, "per": 5}),
        lambda: groups.group_config("a", {"rate": 10_001, "per": 5}),
        lambda: groups.group_config("a", {"rate": 1, "per": 0.05}),
        lambda: groups.group_config("a", {"weight": 0}),
        lambda: groups.group_config("a", {"weight": 1_001}),
        lambda: groups.group_pause("a", seconds=0),
        lambda: queues.queue_config("q", {"group_by": "head"}),         # type: ignore[typeddict-item]
        lambda: queues.queue_config("q", {"group_by": ("head", "a b")}),
        lambda: queues.queue_config("q", {"sched": "best"}),            # type: ignore[typeddict-item]
        lambda: queues.queue_config("q", {"group_rate": 5}),
        lambda: queues.queue_config("q", {"group_per": 5}),
    ):
        with pytest.raises(BadArguments):
            wrong()
    with pytest.raises(TypeError):
        groups.group_config("a", {"size": 3})                           # type: ignore[typeddict-unknown-key]


def test_words_of_later_servers_are_passed_over() -> None:
    line = b"g READY 1 DELAYED 2 RUNNING 3 WEIGHT 4 LIMIT 5 RATE 6/0.500 PAUSED 1 PAUSE_LEFT_S 8 UNTIL 7"
    assert answered(groups.groups().read(), b"200 OK 1", line) == [GroupTotals("g", 1, 2, 3, 4, 5, 6, 0.5, True, 8)]
    told = [b"LIMIT 5", b"RATE 6 PER 0.500", b"WEIGHT 4", b"PAUSED 1", b"PAUSE_LEFT_S 7", b"COLOUR red"]
    assert answered(groups.group_config("g", {}).last.read(), b"200 OK 6", *told) == GroupConfig(5, 6, 0.5, 4, True, 7)
    for wrong in (b"g", b"g READY 1", line.replace(b"6/0.500", b"6/x")):
        with pytest.raises(ProtocolError):
            answered(groups.groups().read(), b"200 OK 1", wrong)


def test_settings_of_a_group_hold_back_its_jobs(client: Client) -> None:
    client.queue_create("q", sched="groups")
    client.put_many("q", [b"a1", b"a2", b"a3"], group="a")
    client.put_many("q", [b"b1", b"b2"], group="b")
    assert client.group_config("a") == GroupConfig(0, 0, 0, 1, False)
    assert client.group_config("a", limit=1, rate=100, per=60) == GroupConfig(1, 100, 60, 1, False)
    assert bodies(client, 2) == [b"a1", b"b1"]
    assert client.groups() == [
        GroupTotals("a", 2, 0, 1, 1, 1, 100, 60, False), GroupTotals("b", 1, 0, 1, 1, 0, 0, 0, False),
    ]
    assert [group.name for group in client.groups("b")] == ["b"]
    assert client.group_config("a", limit=0).limit == 0
    client.group_pause("a")
    assert client.group_config("a").paused
    assert bodies(client) == [b"b2"]
    client.group_resume("a")
    assert bodies(client) == [b"a2", b"a3"]
    client.group_delete("a")
    for call in (client.group_delete, client.group_resume):
        with pytest.raises(GroupNotFound):
            call("a")


def test_a_pause_ends_by_itself(server: RealServer, client: Client) -> None:
    client.queue_create("q", sched="groups")
    client.put("q", b"a", group="a")
    client.group_pause("a", seconds=5)
    assert bodies(client) == []
    server.pass_time(6)
    assert bodies(client) == [b"a"]


def test_settings_of_a_queue_hold_for_each_of_its_groups(client: Client) -> None:
    client.queue_create("q", sched="groups", group_limit=1, group_rate=10, group_per=60)
    told = client.queue_config("q")
    assert (told["sched"], told["group_limit"], told["group_rate"]) == ("GROUPS", "1", "10 PER 60")
    client.put_many("q", [b"a1", b"a2"], group="a")
    client.put("q", b"b1", group="b")
    assert bodies(client) == [b"a1", b"b1"]
    with pytest.raises(BadArguments):
        client.queue_config("q", sched="fifo")


def test_the_jobs_of_a_group_are_worked_off_in_order(client: Client) -> None:
    assert client.queue_config("q", sched="groups", group_order=True)["group_order"] == "ON"
    client.put_many("q", [b"a1", b"a2"], group="a")
    job = client.get("q", expire=60)
    assert job is not None
    assert bodies(client) == []
    job.done()
    assert bodies(client) == [b"a2"]


def test_a_queue_knows_whose_its_jobs_are(client: Client) -> None:
    told = client.queue_config("q", sched="groups", group_by=("head", "shop"))
    assert told["group_by"] == "HEAD shop"
    client.put("q", b"1", headers={"shop": "s7"})
    assert [job.meta.group for job in client.find("q")] == ["s7"]
    with pytest.raises(BadArguments):
        client.put("q", b"2", group="s8")
    assert "group_by" not in client.queue_config("q", group_by="off")
    assert client.group_config("s7", weight=5).weight == 5
