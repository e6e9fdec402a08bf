"""The policy for the jobs of a task: its lease, the number of tries, and the pauses between them. No IO."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from sockpq._protocol.arguments import EXPIRE_S_MAX, TRIES_MAX, integer, seconds, span, switch
from sockpq.errors import BadArguments

Errors = type[BaseException] | tuple[type[BaseException], ...]

EXPIRE_S = 60.0
TRIES = 5
BACKOFF_S = (2.0, 600.0)
RETAIN_S = 3600.0       # where results are wanted, and nobody says for how long
JITTER = 0.5        # a pause is shorter by up to this share, so that jobs that failed together do not return together


class Policy(NamedTuple):
    """The policy of one task or handler; times in seconds.

    `expire`: the lease; a worker renews it as long as it lives. `tries`: hand-outs before the job is given up.
    `backoff`: the pause after the first failure, which doubles with each, and the longest. `retry_on`: only these
    errors are tried again, if given; `give_up_on`: these never are. `retain`: how long jobs that have ended are kept;
    `result`: with the function's return value. `for_queue`: the back-off is also set for the queue.
    `on_cancel`: called with a job that was cancelled while it ran.
    """

    expire: float = EXPIRE_S
    tries: int = TRIES
    backoff: tuple[float, float] = BACKOFF_S
    retry_on: Errors | None = None
    give_up_on: Errors = ()
    retain: float = 0.0
    result: bool = False
    for_queue: bool = False
    on_cancel: Callable[[Any], Any] | None = None

    @property
    def numbered(self) -> bool:
        """True if its jobs have numbers, by which they are found when they have ended."""
        return self.result or self.retain > 0

    def checked(self) -> Policy:
        """Check the policy and return it; raises BadArguments, or TypeError."""
        span(self.expire, "expire")
        integer(self.tries, "tries", 1, TRIES_MAX)
        if not isinstance(self.backoff, tuple) or len(self.backoff) != 2:
            raise TypeError("backoff is a pair of seconds: the first pause and the longest")
        first, longest = self.backoff
        if not 0 <= first <= longest < float("inf"):
            raise BadArguments(f"backoff {self.backoff}: needs 0 <= first pause <= longest")
        seconds(self.retain, "retain", 0, EXPIRE_S_MAX)
        switch(self.result, "result")
        for errors in (self.retry_on or (), self.give_up_on):
            for one in errors if isinstance(errors, tuple) else (errors,):
                if not (isinstance(one, type) and issubclass(one, BaseException)):
                    raise TypeError(f"retry_on and give_up_on take classes of exceptions, not {one!r}")
        return self

    def retries(self, error: BaseException) -> bool:
        """Return whether a job that ended with this error is tried again."""
        if isinstance(error, self.give_up_on):
            return False
        return self.retry_on is None or isinstance(error, self.retry_on)

    def pause(self, attempt: int, draw: Callable[[], float] = random.random) -> float:
        """Return the seconds until the next try after this attempt (1, 2, ..) has failed.

        `draw` gives numbers from 0 to 1.
        """
        first, longest = self.backoff
        whole = longest if first and attempt > 64 else min(first * 2.0 ** (max(attempt, 1) - 1), longest)
        return whole * (1 - JITTER * draw())


def policy_of(
    expire: float, tries: int, backoff: tuple[float, float] | None, retry_on: Errors | None, give_up_on: Errors,
    retain: float | None = None, result: bool = False, on_cancel: Callable[[Any], Any] | None = None,
) -> Policy:
    """Return the policy that was declared; None means the default. Raises BadArguments, or TypeError."""
    kept = (RETAIN_S if result else 0.0) if retain is None else retain
    return Policy(
        expire, tries, BACKOFF_S if backoff is None else backoff, retry_on, give_up_on, kept, result,
        for_queue=backoff is not None, on_cancel=on_cancel,
    ).checked()
