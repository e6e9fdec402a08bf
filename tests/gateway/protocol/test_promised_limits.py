"""Numbers that docs/PROTOCOL.md promises: a line at the limit is taken, one beyond it refused, and the page says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sockpqd.gateway.protocol.responses import TOO_LARGE
from tests.gateway.helpers.parsing import is_refused, read_line

PAGE = Path(__file__).parents[3] / "docs" / "PROTOCOL.md"


def queues(number: int) -> str:
    return "|".join(f"q{one}" for one in range(number))


# What the page says, a line at the limit, and one beyond it.
LIMITS = [
    ("1 to 255 of `A-Z a-z 0-9 _ .", f"PUT {'q' * 255} 0 1", f"PUT {'q' * 256} 0 1"),
    ("not negative, at most 4294967295 (136 years)", "PUT q 0 1 DELAY 4294967295", "PUT q 0 1 DELAY 4294967296"),
    ("not negative, at most 4294967295 (136 years)", "GET q EXPIRE 0", "GET q EXPIRE -1"),
    ("may come in any order, each at most once", "PUT q 0 1 KEY a TTL 1", "PUT q 0 1 KEY a KEY b"),
    ("each of these items (at most 100)", f"PUT q 0 1 AFTER {queues(100)}", f"PUT q 0 1 AFTER {queues(101)}"),
    ("| `DEDUP <key> <seconds>` | 1 to 86400:", "PUT q 0 1 DEDUP k 86400", "PUT q 0 1 DEDUP k 86401"),
    ("| `DEDUP <key> <seconds>` | 1 to 86400:", "PUT q 0 1 DEDUP k 1", "PUT q 0 1 DEDUP k 0.9"),
    ("they take at most 16384 bytes", "PUT q 0 20000 HEAD 16384", "PUT q 0 20000 HEAD 16385"),
    ("At most 1000 queues can be named", f"PUT {queues(1000)} 0 1", f"PUT {queues(1001)} 0 1"),
    ("The `<n>` jobs, 1 to 10000,", "PUTS 10000", "PUTS 10001"),
    ("The `<n>` jobs, 1 to 10000,", "PUTS 1", "PUTS 0"),
    ("up to n jobs at once, 1 to 10000", "GET q COUNT 10000", "GET q COUNT 10001"),
    ("Several jobs at once, at most 10000", f"DONE {'1 ' * 10000}", f"DONE {'1 ' * 10001}"),
    ("[PROGRESS <0 to 100>]", "TOUCH 1 PROGRESS 100", "TOUCH 1 PROGRESS 101"),
    ("15 minutes, or as requested, 1 to 86400 seconds", "SESSION TTL 86400", "SESSION TTL 86401"),
    ("15 minutes, or as requested, 1 to 86400 seconds", "SESSION TTL 1", "SESSION TTL 0.9"),
    ("says how many are shown at most: 1 to 1000,", "FIND q COUNT 1000", "FIND q COUNT 1001"),
    ("A cursor is a word of at most 512 characters", "FIND q", f"FIND q FROM {'x' * 513}"),
    ("| `WEIGHT <n>` | 1 to 1000000:", "QUEUE CONFIG q WEIGHT 1000000", "QUEUE CONFIG q WEIGHT 1000001"),
    ("| `PORTION <n>` | 1 to 1000:", "QUEUE CONFIG q PORTION 1000", "QUEUE CONFIG q PORTION 1001"),
    ("in seconds, 0 < first <= max <= 86400:", "QUEUE CONFIG q BACKOFF 1 86400", "QUEUE CONFIG q BACKOFF 1 86401"),
    ("in seconds, 0 < first <= max <= 86400:", "QUEUE CONFIG q BACKOFF 2 2", "QUEUE CONFIG q BACKOFF 2 1"),
    ("in seconds, 0 < first <= max <= 86400:", "QUEUE CONFIG q BACKOFF 0.001 1", "QUEUE CONFIG q BACKOFF 0 1"),
    ("A limit is at most 2147483647.", "QUEUE CONFIG q LIMIT 2147483647", "QUEUE CONFIG q LIMIT 2147483648"),
    ("A limit is at most 2147483647.", "QUEUE CONFIG q CAPACITY 2147483647", "QUEUE CONFIG q CAPACITY 2147483648"),
    ("A limit is at most 2147483647.", "QUEUE CONFIG q TRIES 2147483647", "QUEUE CONFIG q TRIES 2147483648"),
    ("charged to levels, 1 to 86400,", "SCHED CONFIG CAP 86400", "SCHED CONFIG CAP 86401"),
    ("is remembered, 0 to 86400", "SCHED CONFIG GROUPKEEP 86400", "SCHED CONFIG GROUPKEEP 86401"),
    ("1 to 10000 in 0.1 to 86400 seconds,", "GROUP CONFIG g RATE 10000 PER 1", "GROUP CONFIG g RATE 10001 PER 1"),
    ("1 to 10000 in 0.1 to 86400 seconds,", "GROUP CONFIG g RATE 1 PER 0.1", "GROUP CONFIG g RATE 1 PER 0.09"),
    ("the time of this many groups, 1 to 1000", "GROUP CONFIG g WEIGHT 1000", "GROUP CONFIG g WEIGHT 1001"),
    ("TTL of a session that is opened without one, 1 to 86400", "CONFIG SESSIONTTL 86400", "CONFIG SESSIONTTL 86401"),
    ("gives the pulse data (64 KiB at most)", "PULSE SET p 65536", "PULSE SET p 65537"),
    ("A map has at most 65,536 bytes, else `413`", "MAP SET 1 65536", "MAP SET 1 65537"),
]


def refused(line: str) -> bool:
    """Return whether it is refused at once, by its words or as too large."""
    return is_refused(line) or read_line(line).answer == TOO_LARGE


@pytest.mark.parametrize(("said", "taken", "beyond"), LIMITS, ids=[beyond[:40] for _, _, beyond in LIMITS])
def test_a_limit_is_where_the_page_says(said: str, taken: str, beyond: str) -> None:
    assert said in re.sub(r"\s+", " ", PAGE.read_text("utf-8"))
    assert not refused(taken)
    assert refused(beyond)
