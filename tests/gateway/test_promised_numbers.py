"""Numbers in documents for operators match the program: docs/SECURITY.md, OPERATIONS.md, BEANSTALKD.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sockpqd.beanstalk.limits import WATCHED_MAX
from sockpqd.cluster import limits as cluster
from sockpqd.cluster.leader.clock import SLEW
from sockpqd.cluster.paging.file_space import ROOM_SHARE, SEGMENT_BYTES, SEGMENT_BYTES_MIN
from sockpqd.connections import limits as connections
from sockpqd.core import limits as core
from sockpqd.gateway import limits as gateway
from sockpqd.gateway.monitoring import http

DOCS = Path(__file__).parents[2] / "docs"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# By document: what it says with the number of the program.
PROMISED = [
    ("SECURITY.md", f"in slices of {gateway.EVENT_SLICE_STEPS_MAX:,} steps at most"),
    ("SECURITY.md", f"`NOTIFY` waits while {gateway.EVENT_DUE_HIGH:,} are due, with {gateway.EVENT_DUE_MAX:,} due"),
    ("SECURITY.md", f"the names of a `SUBSCRIBE` ({gateway.EVENT_NAMES_MAX:,} at most)"),
    ("SECURITY.md", f"a command leaves out {core.CLOSED_QUEUES_MAX} of them at most, "
                    f"each of which counts as {core.CLOSED_QUEUE_STEPS} names"),
    ("SECURITY.md", f"{gateway.HANDSHAKES_MAX:,} in progress at most"),
    ("SECURITY.md", f"({gateway.HANDSHAKE_BYTES // KIB} KiB each), {gateway.HANDSHAKE_S:.0f} s for each"),
    ("SECURITY.md", f"closed by its encoded bytes ({cluster.ENTRY_BYTES_MAX // KIB} KiB)"),
    ("SECURITY.md", f"a call for another node, or its answer, has {cluster.CALL_BYTES_MAX // MIB} MiB at most"),
    ("SECURITY.md", f"{core.SESSIONS_MAX:,} in all"),
    ("OPERATIONS.md", f"At most {http.STREAMS_MAX} streams, one hour each; "
                      f"a client that leaves {gateway.EVENT_BACKLOG_BYTES // MIB} MiB unread is cut"),
    ("OPERATIONS.md", f"A node has at most {cluster.PAGE_FILES_MAX} of these files, of {SEGMENT_BYTES // MIB} MiB, "
                      f"or of an eighth of the room there is, but no less than {SEGMENT_BYTES_MIN // MIB} MiB"),
    ("OPERATIONS.md", f"(at most {cluster.BALLAST_BYTES_MAX // GIB} GiB, never the last 32 MiB of the disk)"),
    ("OPERATIONS.md", f"by at most {SLEW:.2%}, however much a clock is off"),
    ("OPERATIONS.md", f"There are at most {core.LEVELS_MAX} levels"),
    ("BEANSTALKD.md", f"A connection watches {WATCHED_MAX} tubes at most"),
]


@pytest.mark.parametrize(("document", "said"), PROMISED, ids=[said[:50] for _, said in PROMISED])
def test_a_document_says_the_number_of_the_program(document: str, said: str) -> None:
    assert said in re.sub(r"\s+", " ", (DOCS / document).read_text("utf-8"))


def test_numbers_in_words() -> None:
    assert (http.STREAM_S, ROOM_SHARE) == (3600, 8)
    page = re.sub(r"\s+", " ", (DOCS / "PROTOCOL.md").read_text("utf-8"))
    assert "(a client host that has vanished is noticed within half a minute)" in page
    assert connections.KEEPALIVE_IDLE_S + connections.KEEPALIVE_PROBES * connections.KEEPALIVE_INTERVAL_S <= 30
    assert "is sent to a pool of that name that comes within a minute" in page
    assert core.WORKER_LEFT_MS == 60_000
