"""Judges the answer to a request: its job is done, given up or sent again later, and the receiver may get a rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

ERROR_BYTES_MAX = 4096          # of an answer's body, in the text kept with the job
REST_S = 1.0                    # the least rest for which a receiver can ask
TRANSIENT = frozenset({408, 425, 429})      # of the 4xx, these say nothing about the request: "4xx" leaves them out

Kind = Literal["done", "bury", "later", "unsent"]


class Answer(NamedTuple):
    """An HTTP answer. `body`: as much as was read; `whole`: that is all of it."""

    status: int
    retry_after: str | None
    body: bytes
    whole: bool


class Failure(NamedTuple):
    """A request without an answer. `reason`: a word; `text`: a sentence for operators."""

    reason: str
    text: str


class Verdict(NamedTuple):
    """The outcome for the job.

    `kind`: "unsent" puts it back as if it had not been taken. `reason` and `error` are kept with the job. `rest_s`: the
    receiver asked for a rest this long; `slow`: it had too many requests. `failed`: the receiver does not do its work,
    as opposed to a job that it does not accept. `result`: of a job that is done.
    """

    kind: Kind
    reason: str
    error: str = ""
    rest_s: float = 0.0
    slow: bool = False
    failed: bool = False
    result: bytes | None = None


class Policy(NamedTuple):
    """The settings of a target by which its answers are judged."""

    result: bool
    bury: Collection[int | str]
    retry_after_max_s: float


def judge(answer: Answer | Failure, policy: Policy, now_s: Callable[[], float]) -> Verdict:
    """Return the verdict on an answer; `now_s` returns the Unix time, for a Retry-After that is a date."""
    if isinstance(answer, Failure):
        return Verdict("later", answer.reason, answer.text, failed=True)
    status, reason = answer.status, f"http_{answer.status}"
    if 200 <= status < 300:
        if not policy.result:
            return Verdict("done", reason)
        if not answer.whole:
            return Verdict("done", "result_too_long")
        return Verdict("done", reason, result=answer.body)
    error = _error_text(answer)
    if status == 429 or (status == 503 and answer.retry_after is not None):
        rest_s = retry_after_s(answer.retry_after, now_s)
        if rest_s is not None:
            return Verdict("later", reason, error, rest_s=min(max(rest_s, REST_S), policy.retry_after_max_s))
        return Verdict("later", reason, error, slow=True, failed=True)
    if status in policy.bury or ("4xx" in policy.bury and 400 <= status < 500 and status not in TRANSIENT):
        return Verdict("bury", reason, error)
    refuses = 400 <= status < 500 and status not in TRANSIENT
    return Verdict("later", reason, error, failed=not refuses)


def retry_after_s(text: str | None, now_s: Callable[[], float]) -> float | None:
    """Return the seconds of a header Retry-After (RFC 9110, section 10.2.3); None if it has none."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        date = parsedate_to_datetime(text[:64])
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now_s()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


def _error_text(answer: Answer) -> str:
    text = answer.body[:ERROR_BYTES_MAX].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"the receiver answered {answer.status}" + (f"\n\n{text}" if text else "")
