"""Tubes from the view of connections: the tube that one uses, the tubes that it watches, and counts of both."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from sockpqd.beanstalk.limits import NAMES_PER_COMMAND, TUBES_LEFT_AT_ONCE, WATCHED_MAX
from sockpqd.beanstalk.turns import Turns, UnboundedTurns

DEFAULT = "default"


class TubeCounts:
    """Counts of what connections of this server did in a tube since it came into use."""

    __slots__ = ("deletes", "jobs", "pauses", "references")

    def __init__(self) -> None:
        self.references = 0         # how often it is used or watched
        self.jobs = 0
        self.deletes = 0
        self.pauses = 0


class TubeUse:
    """The number of connections of this server that use each tube, watch it, and wait for a job of it.

    Thousands of connections may end at once, each of which watches a thousand tubes: these are dropped in portions.
    """

    def __init__(self, turns: Turns | None = None) -> None:
        """`turns`: the scheduler of the server."""
        self.using: Counter[str] = Counter()
        self.watching: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()
        self._known: dict[str, TubeCounts] = {}     # in the order of appearance
        self._turns = turns or UnboundedTurns()
        self._leaving: deque[tuple[Callable[[str], None], Iterator[str]]] = deque()     # what is to be dropped, and how
        self.take(Counter(), DEFAULT)

    def __contains__(self, tube: str) -> bool:
        """Return whether a connection keeps the tube in existence; `default` always exists."""
        return tube in self._known

    def __len__(self) -> int:
        return len(self._known)

    def names(self) -> list[str]:
        """The tubes that exist because of a connection, `default` first and then as they appeared."""
        return list(self._known)

    def take(self, counter: Counter[str], tube: str) -> None:
        """Count one more connection that uses or watches the tube."""
        counter[tube] += 1
        self._known.setdefault(tube, TubeCounts()).references += 1

    def drop(self, counter: Counter[str], tube: str) -> None:
        """Stop counting a connection that used or watched the tube."""
        counter[tube] -= 1
        if not counter[tube]:
            del counter[tube]
        known = self._known[tube]
        known.references -= 1
        if not known.references:
            del self._known[tube]

    def wait(self, tubes: tuple[str, ...]) -> None:
        """Count one more connection that waits for a job of these tubes."""
        waiting = self.waiting
        for tube in tubes:
            waiting[tube] += 1

    def wait_no_more(self, tubes: tuple[str, ...]) -> None:
        """Stop counting a connection that waited for a job of these tubes."""
        for tube in tubes:
            self._wait_no_more(tube)

    def _wait_no_more(self, tube: str) -> None:
        waiting = self.waiting
        waiting[tube] -= 1
        if not waiting[tube]:
            del waiting[tube]

    # ---- connections that have ended

    def leave_line(self, tubes: tuple[str, ...]) -> None:
        """Do as `wait_no_more` for a connection that has ended."""
        self._leave(self._wait_no_more, tubes)

    def leave(self, used: str, watched: tuple[str, ...]) -> None:
        """Stop counting a connection that has ended, and that used and watched these tubes."""
        self.drop(self.using, used)
        self._leave(partial(self.drop, self.watching), watched)

    def _leave(self, drop: Callable[[str], None], tubes: tuple[str, ...]) -> None:
        if len(tubes) <= TUBES_LEFT_AT_ONCE:
            for tube in tubes:
                drop(tube)
            return
        self._leaving.append((drop, iter(tubes)))
        if len(self._leaving) == 1:
            self._turns.call_in_turn(self._leave_some)

    def _leave_some(self) -> None:
        drop, left = self._leaving[0]
        some = list(islice(left, TUBES_LEFT_AT_ONCE))
        for tube in some:
            drop(tube)
        self._turns.budget -= 1 + len(some) // NAMES_PER_COMMAND
        if len(some) < TUBES_LEFT_AT_ONCE:
            self._leaving.popleft()
        if self._leaving:
            self._turns.call_in_turn(self._leave_some)

    def counts(self, tube: str) -> TubeCounts:
        """The counters of a tube; for a tube that no connection uses or watches none are kept."""
        return self._known.get(tube) or TubeCounts()


class Tubes:
    """The tubes of one connection."""

    def __init__(self, use: TubeUse) -> None:
        self._use = use
        self.used = DEFAULT
        self._watched = [DEFAULT]
        use.take(use.using, DEFAULT)
        use.take(use.watching, DEFAULT)
        self.watched: tuple[str, ...] = (DEFAULT,)
        self.names_bytes = len(DEFAULT)         # of the names watched

    def use(self, tube: str) -> None:
        """Use this tube from now on."""
        self._use.take(self._use.using, tube)
        self._use.drop(self._use.using, self.used)
        self.used = tube

    def watch(self, tube: str) -> bool:
        """Watch this tube as well; returns False if there would be too many."""
        if tube not in self._watched:
            if len(self._watched) == WATCHED_MAX:
                return False
            self._watched.append(tube)
            self.names_bytes += len(tube)
            self._use.take(self._use.watching, tube)
            self.watched = tuple(self._watched)
        return True

    def ignore(self, tube: str) -> bool:
        """Stop watching this tube; returns False if it is the only one."""
        if tube in self._watched:
            if len(self._watched) == 1:
                return False
            self._watched.remove(tube)
            self.names_bytes -= len(tube)
            self._use.drop(self._use.watching, tube)
            self.watched = tuple(self._watched)
        return True

    def close(self) -> None:
        """Forget the connection's tubes, as it has ended."""
        self._use.leave(self.used, self.watched)
        self._watched = []
