"""Mistakes: the rules with one of them replaced. Each must break an invariant, or the invariants would notice nothing.

Which hazard a mistake stands for is in spec/model 3, with the length of the shortest history that shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.model.invariants import DURABLE
from tests.model.rules import Label, Rules
from tests.model.search import follow
from tests.model.state import NOBODY, Log, Node, Position, State, Term, start


class CutBehindAPiece(Rules):
    """A piece of the log that was sent again cuts off what follows it, though it is equal."""

    def appended(self, log: Log, theirs: Log, end: int) -> Log:
        return theirs[:end]


class AppendBehindAnyEntry(Rules):
    """A follower looks only where its log ends, not with which entry."""

    def appended(self, log: Log, theirs: Log, end: int) -> Log:
        return log + theirs[len(log):end]


class CountStaleAnswers(Rules):
    """A leader counts what was acknowledged to its earlier leaderships."""

    def matches(self, state: State, term: int, index: int) -> int:
        matches = [max(sent.match for sent in node.sent[:term + 1]) for node in state.nodes]
        return sum(1 << one for one, match in enumerate(matches) if match >= index)

    def without_the_dead(self, state: State) -> State:
        return state


class AcknowledgeBeforeTheSync(Rules):
    """A follower acknowledges what is in its memory only."""

    syncs = True

    def vouched(self, node: Node, record: Term) -> int:
        return super().vouched(self.written(node), record)


class VoteBeforeTheSync(Rules):
    """A vote, or a candidacy, leaves a node before the disk knows of it."""

    syncs = True

    def bound(self, node: Node) -> Node:
        return node

    def without_the_dead(self, state: State) -> State:
        return state


class CountAnUnsyncedCopy(Rules):
    """A leader counts its own copy of an entry before it is on its disk."""

    syncs = True

    def own(self, node: Node) -> int:
        return len(node.log)


class ForgetTheTerm(Rules):
    """A node that is started again has forgotten its term and its vote."""

    def restarted(self, node: Node) -> Node:
        return super().restarted(node)._replace(term=0, vote=NOBODY)

    def without_the_dead(self, state: State) -> State:
        return state


class WipeTheLogAtTheStart(Rules):
    """A node that is started again throws its log away, and keeps its right to vote."""

    def restarted(self, node: Node) -> Node:
        return self.written(super().restarted(node)._replace(log=(), commit=0))


class ServeAtOnce(Rules):
    """A leader serves before it has executed the entry with which its leadership begins."""

    def announced(self, node: Node) -> bool:
        return node.leads


class BelieveCommitIndexes(Rules):
    """A commit index moves over entries that were not compared with the leader's."""

    def compared(self, log: Log, theirs: Log, end: int) -> int:
        return len(log)


class AcknowledgeWhatFailed(Rules):
    """A follower acknowledges a snapshot that it could not load."""

    def vouched(self, node: Node, record: Term) -> int:
        return len(record.log)


class CommitEarlierTerms(Rules):
    """A leader commits an entry of an earlier term because a majority has it."""

    def commits(self, node: Node, index: int) -> bool:
        return True


class VoteForAnyLog(Rules):
    """Candidates whose logs are older get votes."""

    def as_new(self, node: Node, end: Position) -> bool:
        return True


class VoteAgain(Rules):
    """A node votes for each candidate that asks, whichever it voted for before in that term."""

    def free_vote(self, node: Node) -> bool:
        return True


class HalfIsEnough(Rules):
    """Half of the voters count as a majority."""

    def majority(self, counted: int, nodes: int) -> bool:
        return 2 * (nodes & counted).bit_count() >= counted.bit_count()


@dataclass(frozen=True)
class Mistake:
    """A mistake, the smallest cluster that shows it, and what it stands for."""

    rules: type[Any]
    stands_for: str             # hazards as in docs/ARCHITECTURE.md, issues of nats-server as NATS #7564
    cluster: dict[str, Any] = field(default_factory=dict)
    invariants: tuple[Callable[[Any, Any], bool], ...] = DURABLE
    before: tuple[Label, ...] = ()      # steps from the founding to the state from which the search begins

    @property
    def name(self) -> str:
        """The name in the table, spec/model 3."""
        return str(self.rules.__name__)

    def start(self) -> Any:
        """Return the state from which the search begins."""
        first = start(**{"nodes": 3, "terms": 3, "entries": 0, "crashes": 0, **self.cluster})
        state = follow(self.rules(), first, self.before)
        assert state is not None, self.name
        return state


# Node 4 has acknowledged two entries to node 0, and was given another leader's instead, as node 0 was.
DEPOSED: tuple[Label, ...] = (
    ("stand", 0, 1), ("vote", 1, 0, 1), ("vote", 2, 0, 1), ("lead", 0), ("propose", 0), ("receive", 4, 1, 2, 0),
    ("stand", 1, 2), ("vote", 2, 1, 2), ("vote", 3, 1, 2), ("lead", 1), ("receive", 0, 2, 1, 0),
    ("receive", 4, 2, 1, 0), ("stand", 0, 3), ("vote", 2, 0, 3), ("vote", 3, 0, 3), ("lead", 0),
)

# Nodes 0 and 1 have led, each with an entry of its own.
TWO_LEADERS: tuple[Label, ...] = (
    ("stand", 0, 1), ("stand", 1, 2), ("vote", 2, 0, 1), ("vote", 2, 1, 2), ("lead", 0), ("lead", 1),
    ("receive", 0, 2, 0, 0), ("stand", 0, 3), ("vote", 2, 0, 3), ("lead", 0),
)

MISTAKES = (
    Mistake(CutBehindAPiece, "H1"),
    Mistake(AppendBehindAnyEntry, "H1"),
    Mistake(CountStaleAnswers, "H2", {"nodes": 5, "entries": 1}, before=DEPOSED),
    Mistake(AcknowledgeBeforeTheSync, "H4, NATS #7564, NATS #7567", {"crashes": 1}),
    Mistake(VoteBeforeTheSync, "H4", {"crashes": 1}, before=(("stand", 0, 1), ("stand", 1, 1))),
    Mistake(CountAnUnsyncedCopy, "H4", {"crashes": 1}),
    Mistake(ForgetTheTerm, "H4", {"crashes": 1}),
    Mistake(WipeTheLogAtTheStart, "H9b, H9c, NATS #6888", {"crashes": 1}),
    Mistake(ServeAtOnce, "H8"),
    Mistake(BelieveCommitIndexes, "H9a"),
    Mistake(AcknowledgeWhatFailed, "H9d"),
    Mistake(CommitEarlierTerms, "Raft, figure 8", {"terms": 4}, before=TWO_LEADERS),
    Mistake(VoteForAnyLog, "Raft 5.4.1"),
    Mistake(VoteAgain, "Raft 5.2"),
    Mistake(HalfIsEnough, "Raft 5.2", {"nodes": 4}),
)
