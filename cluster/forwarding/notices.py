"""Sends messages of NOTIFY outside the log: from the leader to the nodes with subscribers, at most once.

Each node announces the channels of its subscribers to the others. So the leader knows where to send a message, and does
not send one without subscribers. Messages travel over the links between the nodes, in order. If a peer falls behind,
messages for it are dropped. A node whose subscribers may have missed a message reports that to them: after a drop,
after its link to the leader broke, and after a change of leader (spec/events 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.api import Channels
from sockpqd.cluster.forwarding.listened import Listened
from sockpqd.cluster.raft.peer import Network, Peer
from sockpqd.cluster.wire.messages import Heard, Listening, Notice


class NoticeListener(Protocol):
    """Delivers messages to the subscribers of this node."""

    def notice(self, channel: str, data: bytes) -> None:
        """Deliver a message of NOTIFY to this node's subscribers."""

    def notices_lost(self) -> None:
        """Report that messages may have been lost on their way to this node."""


class Notices:
    """The channels to which subscribers of this node and of the others listen."""

    def __init__(
        self, name: str, network: Network, peers: dict[str, Peer], leader: Callable[[], str | None],
        listener: NoticeListener,
    ) -> None:
        """`name`: the name of this node; `leader()`: the name of the leader, None while this node knows none."""
        self._name = name
        self._network = network
        self._peers = peers
        self._leader = leader
        self._listener = listener
        self._own = Listened()
        self._number = 0                                    # of this state of what is listened to here
        self._sent: dict[str, int] = {}                     # the number that was sent to each peer
        self._heard: dict[str, int] = {}                    # and that it has confirmed
        self._of_peers: dict[str, Listened] = {}
        self._lost: dict[str, None] = {}                    # peers for which messages were dropped
        self._hearers: dict[str, tuple[int, list[str]]] = {}        # by channel: how many subscribers, on which peers
        self._followed: str | None = None                   # the leader whose messages come
        self._dropping = False                              # the last messages came from another node

    # ---- this node

    def listen(self, channels: list[Channels]) -> None:
        """Set the channels that subscribers of this node listen to."""
        self._own = Listened(channels)
        self._number += 1
        self._hearers.clear()

    @property
    def known(self) -> bool:
        """True if the leader knows the channels of this node."""
        leader = self._leader()
        return leader == self._name or (leader is not None and self._heard.get(leader) == self._number)

    def notify(self, channel: str, data: bytes) -> int:
        """Leader: send a message to all subscribers, here and elsewhere; returns how many there are."""
        found = self._hearers.get(channel)
        if found is None:
            found = self._find(channel)
        count, peers = found
        self._listener.notice(channel, data)
        for name in peers:
            if name in self._lost or self._network.buffered_bytes(name) > limits.NOTICES_BYTES_MAX:
                self._lost[name] = None
            else:
                self._network.send(name, Notice(channel, data))
        return count

    def _find(self, channel: str) -> tuple[int, list[str]]:
        if len(self._hearers) >= limits.CHANNELS_REMEMBERED:
            self._hearers.clear()
        count = self._own.listening(channel)
        peers = []
        for name, listened in self._of_peers.items():
            there = listened.listening(channel)
            if there:
                count += there
                peers.append(name)
        self._hearers[channel] = count, peers
        return count, peers

    def tick(self) -> None:
        """Report to the peers the channels that have subscribers here, and dropped messages."""
        self._look_at_leader(self._leader())
        for name, peer in self._peers.items():
            if not peer.up or peer.info is None or peer.info.subscribed is None:
                continue                    # it is away, or of a version that does not know of this
            if self._sent.get(name, 0) != self._number:
                self._sent[name] = self._number
                self._network.send(name, Listening(self._number, self._own.channels))
            if name in self._lost and self._network.buffered_bytes(name) <= limits.NOTICES_BYTES_MAX // 2:
                del self._lost[name]
                self._network.send(name, Notice("", b"", lost=True))

    # ---- the others

    def received(self, name: str, message: Notice | Listening | Heard) -> None:
        """Handle a message of a peer."""
        if isinstance(message, Notice):
            leader = self._leader()
            if leader is not None and leader != name:
                self._drop()        # it led before, and the message comes after the next leader's
                return
            self._look_at_leader(name)
            if message.lost:
                self._listener.notices_lost()
            else:
                self._dropping = False
                self._listener.notice(message.channel, message.data)
        elif isinstance(message, Listening):
            self._of_peers[name] = Listened(message.channels)
            self._hearers.clear()
            self._network.send(name, Heard(message.number))
        else:
            self._heard[name] = message.number

    def link_changed(self, name: str) -> None:
        """Record that the connection to this peer began or ended: messages in flight are lost."""
        self._sent.pop(name, None)
        self._heard.pop(name, None)
        self._lost.pop(name, None)
        if self._of_peers.pop(name, None) is not None:
            self._hearers.clear()
        if name == self._followed:
            self._listener.notices_lost()

    def _drop(self) -> None:
        """Drop a message; subscribers are notified of the loss once, until they get the next message."""
        if not self._dropping:
            self._dropping = True
            self._listener.notices_lost()

    def _look_at_leader(self, leader: str | None) -> None:
        """Handle a change of leader: the last messages of the previous one may have been lost."""
        if leader is not None and leader != self._followed:
            before, self._followed = self._followed, leader
            if before is not None:
                self._listener.notices_lost()
