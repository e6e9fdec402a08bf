"""Mistakes with nodes that have lost their disk, or were given an older copy of it: see mistakes.py."""

from __future__ import annotations

from tests.model.invariants import ALWAYS
from tests.model.losses import Losses
from tests.model.mistakes import Mistake
from tests.model.rules import Label, put
from tests.model.state import Disk, Found, Node, Position, Sent, State


class Copies(Losses):
    """Older copies are put in the place of disks, and no disk is lost."""

    wipes, copies = False, True


class VoteWithAnEmptyDisk(Losses):
    """A node whose disk was lost, or whose damaged files were set aside, votes as if it knew what it promised."""

    def emptied(self, node: Node) -> Disk:
        return Disk(voter=True)

    def must_ask(self, node: Node) -> bool:
        return False


class CountTheForgetful(Losses):
    """A leader counts what a node acknowledges that has lost its disk and was not admitted since."""

    def counts(self, node: Node) -> bool:
        return True


class AdmitAtOnce(Losses):
    """A leader admits a node as soon as it sees it."""

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        return True


class AdmitWithoutAnswers(Losses):
    """A leader admits a node that has caught up, without new answers of a majority."""

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        everybody = (1 << len(state.nodes)) - 1
        return super().may_admit(state, one, other, found._replace(answered=everybody))


class AdmitByTheNewcomer(Losses):
    """A leader counts the node that it admits among the majority by which it knows that it leads."""

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        caught_up = state.nodes[other].sent[state.nodes[one].term].caught_up >= found.target
        return caught_up and self.majority(state.nodes[one].counted, found.answered | 1 << other | 1 << one)


class AdmitBeforeItHasCaughtUp(Losses):
    """A leader admits a node that lacks entries."""

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        return super().may_admit(state, one, other, found._replace(target=0))


class AdmitAfterAnOffer(Losses):
    """A leader admits a node after it has asked another one to take over."""

    hands_over = True

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        nodes = list(state.nodes)
        nodes[one] = nodes[one]._replace(offered=False)
        return super().may_admit(state._replace(nodes=tuple(nodes)), one, other, found)


class HeedAnyCandidate(Losses):
    """A node votes for a candidate to which it did not agree since it heard its leader."""

    def expects(self, node: Node, other: int, sent: Sent) -> bool:
        return True


class HeedLateQuestions(Losses):
    """The question before a candidacy arrives after it, and after the answer to a leader."""

    def vote(self, state: State, one: int, other: int, term: int) -> State | None:
        node, asked = state.nodes[one], state.nodes[other].sent[term]
        late = not node.leads and asked.asked is not None and max(node.term, node.no_vote) < term
        if late:
            state = put(state, one, node._replace(agreed=node.agreed | 1 << other))
        return super().vote(state, one, other, term)


class GoOnWithoutAsking(Copies):
    """A node continues after a time, though not all could be asked: the remaining risk (spec/cluster 8.7)."""

    def enough(self, greeted: int, others: int) -> bool:
        return greeted.bit_count() >= others.bit_count() - 1


class AskNobody(Copies):
    """A node that was started with an older copy of its disk votes and counts at once."""

    def must_ask(self, node: Node) -> bool:
        return False


class VoteForShorterLogs(Copies):
    """A node that was started votes for logs that are shorter than the longest that it knows of."""

    def furthest(self, node: Node, end: Position) -> Position:
        return (0, 0)


class VoteInTermsOfOthers(Copies):
    """A node that was started votes in a term to which another one has come."""

    hands_over = True

    def no_vote(self, node: Node, term: int) -> int:
        return node.no_vote


class AcknowledgeInEarlierTerms(Copies):
    """A node that was started acknowledges entries in a term before the others' terms."""

    def greeted_term(self, node: Node, term: int) -> Node:
        return node


# Node 0 has committed an entry with node 2, which was given an older copy of its disk.
COMMITTED: tuple[Label, ...] = (
    ("stand", 0, 1, 6), ("vote", 1, 0, 1), ("lead", 0), ("copy", 2), ("receive", 2, 1, 1, 0), ("commit", 0, 1),
    ("put back", 2),
)
# Of five nodes 0 leads and 3 stands in the next term. Node 2 has voted for it and lost its disk; 1 and 4 have answered.
VOTED: tuple[Label, ...] = (
    ("stand", 0, 1, 30), ("vote", 1, 0, 1), ("vote", 2, 0, 1), ("lead", 0), ("stand", 3, 2, 20), ("vote", 2, 3, 2),
    ("lose the disk", 2), ("find", 0, 2), ("answer", 1, 0), ("answer", 4, 0), ("receive", 2, 1, 1, 0), ("admit", 0, 2),
    ("vote", 4, 3, 2),
)
# Nodes 0 and 1 stand, node 2 has voted for both, 0 was elected, and 2 has lost its disk.
TWICE: tuple[Label, ...] = (
    ("stand", 0, 1, 6), ("stand", 1, 2, 5), ("vote", 2, 0, 1), ("vote", 2, 1, 2), ("lead", 0), ("lose the disk", 2),
)
# Node 1 has voted for 0, and was given an older copy.
FORGOTTEN: tuple[Label, ...] = (("stand", 0, 1, 6), ("copy", 1), ("vote", 1, 0, 1), ("put back", 1))
# Node 0 has committed an entry with node 2, which has lost its disk.
CAUGHT_UP: tuple[Label, ...] = (
    ("stand", 0, 1, 6), ("vote", 1, 0, 1), ("lead", 0), ("receive", 2, 1, 1, 0), ("lose the disk", 2),
)
# Node 0 has asked node 1 to take over, node 2 has voted for it and lost its disk, and 3 and 4 have answered.
OFFERED: tuple[Label, ...] = (
    ("stand", 0, 1, 30), ("vote", 1, 0, 1), ("vote", 2, 0, 1), ("lead", 0), ("receive", 1, 1, 1, 0),
    ("hand over", 0, 1), ("take over", 1), ("vote", 2, 1, 2), ("lose the disk", 2), ("find", 0, 2), ("answer", 3, 0),
    ("answer", 4, 0), ("receive", 2, 1, 1, 0), ("admit", 0, 2), ("propose", 0), ("receive", 2, 1, 2, 0),
)
# Node 0 has asked node 1 to take over. Node 2 has voted for 3 in that term, and was given an older copy.
ASKED: tuple[Label, ...] = (
    ("stand", 0, 1, 30), ("vote", 1, 0, 1), ("vote", 4, 0, 1), ("lead", 0), ("receive", 1, 1, 1, 0),
    ("hand over", 0, 1), ("stand", 3, 2, 20), ("copy", 2), ("vote", 2, 3, 2), ("vote", 4, 3, 2), ("put back", 2),
    ("greet", 2, 0), ("greet", 2, 1), ("greet", 2, 3), ("greet", 2, 4), ("take over", 1),
)
ONE = {"terms": 2, "losses": 1}
FIVE = {"nodes": 5, **ONE}

MISTAKES_OF_LOSSES = (
    Mistake(VoteWithAnEmptyDisk, "NATS #7549, NATS #7556", ONE, ALWAYS),
    Mistake(CountTheForgetful, "spec/cluster 4.5", ONE, ALWAYS, TWICE),
    Mistake(AdmitAtOnce, "spec/cluster 4.5", ONE, ALWAYS, TWICE),
    Mistake(AdmitWithoutAnswers, "spec/cluster 4.5", ONE, ALWAYS, TWICE),
    Mistake(AdmitByTheNewcomer, "spec/cluster 4.5", ONE, ALWAYS, TWICE),
    Mistake(AdmitBeforeItHasCaughtUp, "spec/cluster 4.5", ONE, ALWAYS, CAUGHT_UP),
    Mistake(AdmitAfterAnOffer, "spec/cluster 4.5", {**FIVE, "entries": 1}, ALWAYS, OFFERED),
    Mistake(HeedAnyCandidate, "spec/cluster 4.1", FIVE, ALWAYS, VOTED),
    Mistake(HeedLateQuestions, "spec/cluster 4.1", FIVE, ALWAYS, VOTED[:-1]),
    Mistake(AskNobody, "spec/cluster 4.6", ONE, ALWAYS, FORGOTTEN),
    Mistake(GoOnWithoutAsking, "spec/cluster 8.7", ONE, ALWAYS, FORGOTTEN),
    Mistake(VoteForShorterLogs, "spec/cluster 4.6", ONE, ALWAYS, COMMITTED),
    Mistake(VoteInTermsOfOthers, "spec/cluster 4.6", FIVE, ALWAYS, ASKED),
    Mistake(AcknowledgeInEarlierTerms, "spec/cluster 4.6", ONE, ALWAYS, FORGOTTEN),
)
