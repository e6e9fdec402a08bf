"""The lease of a leader (spec/cluster 1.3): a model of its own, with time, of a leader, its followers and an election.

Time goes by in ticks, in which each clock runs by its own rate: the leader's is the slowest and the followers' the
fastest that may be believed in, a tenth apart. Of each follower at most one message is in the network. What is modelled
here is only who may hold a lease when another node is elected; what is elected and why is in rules.py and losses.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.rules import Label
from tests.model.state import NOBODY

PROMISE, LEASE = 30, 27         # units of a clock: a tenth less
FAST, SLOW = 10, 9              # units in a tick


class Follower(NamedTuple):
    """A follower of the first leader, and what that one knows of it."""

    promise: int = 0            # it elects no node for this time, by its clock
    lease: int = 0              # the leader relies on it for so long, by the leader's clock
    sent: int = 0               # 1: a heartbeat is on its way to it; 2: its answer is on its way back
    age: int = 0                # how long ago the heartbeat was sent, by the leader's clock
    vote: int = NOBODY          # it has voted for this follower (and 1) in the next term
    asked: bool = False         # the leader has asked it to take over


class Leases(NamedTuple):
    """The state: followers, and the leader of the first term."""

    followers: tuple[Follower, ...]
    leads: bool = True
    offered: bool = False       # it has asked another node to take over
    voted: int = NOBODY         # it has voted in the next term


class LeaseRules:
    """The rules of the leader and its followers."""

    slow = SLOW
    lease = LEASE

    def normal(self, state: Leases) -> Leases:
        """Return the state: followers have their names."""
        return state

    def steps(self, state: Leases) -> Iterator[tuple[Label, Leases]]:
        """Yield all that may happen next."""
        yield ("tick",), self.tick(state)
        for one, follower in enumerate(state.followers):
            if state.leads and not follower.sent:
                yield ("send", one), self._put(state, one, follower._replace(sent=1, age=0))
            if follower.sent:
                yield ("lose", one), self._put(state, one, follower._replace(sent=0, age=0))
            if follower.sent == 1 and not follower.vote:
                promise = max(follower.promise, PROMISE)
                yield ("receive", one), self._put(state, one, follower._replace(promise=promise, sent=2))
            if follower.sent == 2 and state.leads:
                lease = max(follower.lease, self.counted(follower.age))
                yield ("count", one), self._put(state, one, follower._replace(lease=lease, sent=0, age=0))
            yield ("restart", one), self._put(state, one, follower._replace(promise=self.restarted(), sent=0, age=0))
            # Each side sees for itself that their connection has ended.
            yield ("disconnect", one), self._put(state, one, follower._replace(
                promise=self.disconnected(follower.promise), sent=0, age=0))
            yield ("forget", one), self._put(state, one, follower._replace(lease=0))
            if state.leads and not state.offered:
                yield ("hand over", one), self._put(state, one, follower._replace(asked=True))._replace(offered=True)
            yield from self._votes(state, one, follower)

    def _votes(self, state: Leases, one: int, follower: Follower) -> Iterator[tuple[Label, Leases]]:
        if not follower.vote and (self.free(follower) or follower.asked):
            yield ("stand", one), self._put(state, one, follower._replace(vote=one + 1))
        for other, candidate in enumerate(state.followers):
            if candidate.vote != other + 1 or other == one:
                continue
            if not follower.vote and (self.free(follower) or candidate.asked):
                yield ("vote", one, other), self._put(state, one, follower._replace(vote=other + 1))
        if follower.vote == one + 1 and not state.voted:
            yield ("vote of the leader", one), state._replace(leads=False, voted=one + 1)

    @staticmethod
    def _put(state: Leases, one: int, follower: Follower) -> Leases:
        return state._replace(followers=(*state.followers[:one], follower, *state.followers[one + 1:]))

    def tick(self, state: Leases) -> Leases:
        """Let one step of time pass, for clocks of different rates."""
        return state._replace(followers=tuple(
            one._replace(
                promise=max(0, one.promise - FAST), lease=max(0, one.lease - self.slow),
                age=min(PROMISE + FAST, one.age + self.slow) if one.sent else 0)
            for one in state.followers))

    def counted(self, age: int) -> int:
        """Return for how long the leader relies on an answer: from when it sent the message."""
        return max(0, self.lease - age)

    def restarted(self) -> int:
        """Return the promise of a node that was started again: the longest one that it may have made."""
        return PROMISE

    def disconnected(self, promise: int) -> int:
        """Return the promise of a node after its connection to the leader has ended."""
        return promise

    def free(self, follower: Follower) -> bool:
        """Return whether a follower may help to elect another node."""
        return follower.promise == 0

    def until(self, state: Leases) -> int:
        """Return how long the leader holds its lease: as long as a majority, itself included, keeps its promise."""
        if not state.leads or state.offered:
            return 0
        needed = (len(state.followers) + 1) // 2
        return sorted((one.lease for one in state.followers), reverse=True)[needed - 1]


def nobody_else_is_elected(rules: LeaseRules, state: Leases) -> bool:
    """While the leader holds its lease, no other node is elected."""
    votes = [*(one.vote for one in state.followers if one.vote), *((state.voted,) if state.voted else ())]
    elected = any(2 * votes.count(candidate) > len(state.followers) + 1 for candidate in set(votes))
    return not elected or rules.until(state) == 0
