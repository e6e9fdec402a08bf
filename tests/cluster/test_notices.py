"""Messages of NOTIFY between nodes: who gets them, and the report when some may be lost."""

from __future__ import annotations

from sockpqd.cluster.forwarding.notices import Notices
from sockpqd.cluster.limits import NOTICES_BYTES_MAX
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.wire.messages import Heard, Info, Listening, Message, Notice

KNOWS = Info("FOLLOWER", 0, 0, 0, True, True, False, False, 0, "1", 0, b"", subscribed=())
OLD = Info("FOLLOWER", 0, 0, 0, True, True, False, False, 0, "0", 0, b"")


class Wires:
    """A network that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []
        self.unsent = 0

    def send(self, name: str, message: Message) -> None:
        self.sent.append((name, message))

    def buffered_bytes(self, name: str) -> int:
        return self.unsent


class Ears:
    """The subscribers of this node."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def notice(self, channel: str, data: bytes) -> None:
        self.heard.append(data)

    def notices_lost(self) -> None:
        self.heard.append(b"LOST")


def node(leader: list[str | None]) -> tuple[Notices, Wires, Ears]:
    """Return node n1 of three; `leader` is the name of the leader."""
    wires, ears = Wires(), Ears()
    peers = {name: Peer(PeerNode(name)) for name in ("n2", "n3")}
    for peer in peers.values():
        peer.up, peer.info = True, KNOWS
    return Notices("n1", wires, peers, lambda: leader[0], ears), wires, ears


def test_messages_go_only_where_somebody_listens() -> None:
    notices, wires, ears = node(["n1"])
    assert notices.notify("c", b"1") == 0
    notices.received("n2", Listening(1, [(["c"], [], 2), ([], ["other"], 1)]))
    assert notices.notify("c", b"2") == 2
    notices.listen([([], ["c"], 3)])
    assert notices.notify("c", b"3") == 5
    assert notices.notify("other.1", b"4") == 1
    assert wires.sent == [
        ("n2", Heard(1)), ("n2", Notice("c", b"2")), ("n2", Notice("c", b"3")), ("n2", Notice("other.1", b"4")),
    ]
    assert ears.heard == [b"1", b"2", b"3", b"4"]
    notices.link_changed("n2")
    assert notices.notify("c", b"5") == 3
    assert ("n2", Notice("c", b"5")) not in wires.sent


def test_a_peer_that_is_behind_is_told_later_that_it_missed_something() -> None:
    notices, wires, _ = node(["n1"])
    notices.received("n2", Listening(1, [(["c"], [], 1)]))
    wires.unsent = NOTICES_BYTES_MAX + 1
    notices.notify("c", b"1")
    wires.unsent = NOTICES_BYTES_MAX
    notices.notify("c", b"2")           # it must not come before it is told of the gap
    notices.tick()
    assert [message for _, message in wires.sent] == [Heard(1)]
    wires.unsent = 0
    notices.tick()
    notices.notify("c", b"3")
    assert [message for _, message in wires.sent[1:]] == [Notice("", b"", lost=True), Notice("c", b"3")]


def test_the_others_are_told_what_is_listened_to_here_and_confirm_it() -> None:
    leader: list[str | None] = [None]
    notices, wires, _ = node(leader)
    notices._peers["n3"].info = OLD
    assert not notices.known
    leader[0] = "n2"
    notices.listen([(["c"], [], 1)])
    notices.tick()
    notices.tick()
    assert wires.sent == [("n2", Listening(1, [(["c"], [], 1)]))]       # n3 does not know such messages
    assert not notices.known
    notices.received("n2", Heard(1))
    assert notices.known
    notices.link_changed("n2")
    assert not notices.known
    notices.tick()
    assert len(wires.sent) == 2


def test_a_gap_is_told_when_another_node_leads_or_the_link_to_the_leader_changes() -> None:
    leader: list[str | None] = [None]
    notices, _, ears = node(leader)
    notices.tick()
    leader[0] = "n2"
    notices.tick()
    assert ears.heard == []             # the first leader that is known
    leader[0] = None
    notices.tick()
    assert ears.heard == []
    notices.received("n3", Notice("c", b"1"))       # its message is the first that is heard of it
    leader[0] = "n3"
    notices.tick()
    assert ears.heard == [b"LOST", b"1"]
    notices.link_changed("n2")
    assert ears.heard == [b"LOST", b"1"]
    notices.link_changed("n3")
    notices.received("n3", Notice("", b"", lost=True))
    assert ears.heard[2:] == [b"LOST", b"LOST"]


def test_what_a_leader_sent_before_comes_too_late_once_another_leads() -> None:
    leader: list[str | None] = ["n2"]
    notices, _, ears = node(leader)
    notices.received("n2", Notice("c", b"1"))
    leader[0] = "n3"
    notices.received("n3", Notice("c", b"4"))
    for data in (b"2", b"3"):
        notices.received("n2", Notice("c", data))
    notices.received("n3", Notice("c", b"5"))
    notices.received("n2", Notice("", b"", lost=True))
    assert ears.heard == [b"1", b"LOST", b"4", b"LOST", b"5", b"LOST"]
    leader[0] = None                    # between two leaders
    notices.received("n3", Notice("c", b"6"))
    assert ears.heard[6:] == [b"6"]
