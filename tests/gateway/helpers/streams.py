"""Streams that clients may send: right, wrong and almost right."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from([b"q", b"EXPIRE", b"IS", b"NEW", b"7", b"a.b", b"a|b", b"a||b", b"*", b""])
NUMBERS = st.sampled_from([b"0", b"1", b"5", b"39", b"41", b"-1", b"x", b"300", b"99999999999999999999", b"300000000"])
KEYWORDS = st.sampled_from([
    b"EXPIRE", b"EXPIRE=5", b"THEN", b"DONE", b"LATER", b"IS", b"NEW", b"WAIT", b"LAST", b"KEY", b"DATA", b"DELAY 1",
    b"AT 5", b"PRI 1", b"COUNT 2", b"META", b"WITHIN 1", b"FIRST", b"YIELD", b"READY", b"TRIES 5 DEAD", b"AFTER",
    b"EVERY",
])
BEGINNINGS = st.sampled_from([
    b"PUT", b"PUT", b"PUT", b"put", b"GET", b"GETB", b"GETBE", b"DONE", b"LATER", b"TOTAL", b"RUNLIST", b"SNAPSHOT",
    b"QUEUE LIST", b"QUEUE LIST a*", b"QUEUE",
    b"CLONE", b"SYNC PUT", b"SYNC", b"OFFLINE", b"QUIT", b"PING", b"CLUSTER STATUS", b"CLUSTER ADD a.b 7 5",
    b"CLUSTER ADD", b"CLUSTER REMOVE", b"CLUSTER TRANSFER", b"CLUSTER", b"NONSENSE", b"", b"SESSION", b"SESSION",
    b"SESSION 1_9f3c5a7e11d0c2b4", b"SESSION CLOSE", b"TAKEN", b"GET * BOUND", b"GETB q BOUND", b"REQ 1 GET q",
    b"PUTS", b"PUTS 0", b"PUTS 2", b"REQ 1 PUTS 1", b"TOUCH 5", b"BURY 5", b"KICK q", b"CHANGE 5", b"CHANGE KEY q k",
    b"CHANGE", b"DELETE", b"MOVE 5 q", b"MOVE", b"PEEK", b"PEEK KEY q", b"BEGIN", b"COMMIT", b"ROLLBACK",
    b"QUEUE CREATE q", b"QUEUE CONFIG q", b"QUEUE PURGE q", b"CONFIG", b"CONFIG GRACE", b"POLICY", b"DONE 5 6",
    b"LATER 5", b"GET q", b"REQ 6 CHANGE 5", b"REQ 7 MOVE 5", b"REQ 8 QUEUE", b"REQ 9 COMMIT",
    b"REQ 1 GETB", b"REQ 2 PUT", b"REQ 3 DONE", b"REQ 4 CLONE", b"REQ 5", b"REQ x",
])
SPACES = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b"\r", b"\x0b"])
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\n"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    words = [draw(BEGINNINGS), *draw(st.lists(st.one_of(NAMES, NUMBERS, KEYWORDS), max_size=8))]
    return draw(SPACES).join(words) + draw(ENDS)


@st.composite
def puts(draw: st.DrawFn) -> bytes:
    data = draw(st.binary(max_size=60))
    before = draw(st.sampled_from([b"", b"", b"REQ 1 ", b"REQ 2 ", b"REQ 0 ", b"SESSION\r\nREQ 1 "]))
    tail = draw(st.sampled_from([b"", b" NEW", b" IS x WAIT o", b" BAD"]))
    return b"%sPUT q 0 %d%s\r\n%s" % (before, len(data), tail, data)


@st.composite
def changes(draw: st.DrawFn) -> bytes:
    """Draw CHANGE and MOVE with data; some are malformed, and their data must still be found."""
    data = draw(st.binary(max_size=60))
    before = draw(st.sampled_from([b"", b"REQ 1 ", b"REQ x ", b"REQ 1 REQ 2 "]))
    head = draw(st.sampled_from([b"CHANGE 5", b"CHANGE KEY q k PRI 1", b"CHANGE x", b"MOVE 5 q DELAY 1", b"MOVE 5"]))
    return b"%s%s DATA %d\r\n%s" % (before, head, len(data), data)


JOB_TAILS = st.sampled_from([b"", b" KEY k", b" DELAY 5 TTL 7", b" NEW", b" NEW WAIT o", b" BAD", b" IS i"])


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Draw a correct PUTS; some of its jobs are malformed or too large."""
    jobs = []
    for data in draw(st.lists(st.binary(max_size=60), min_size=1, max_size=5)):
        queue = draw(st.sampled_from([b"q", b"q", b"a,b"]))
        data_end = draw(st.sampled_from([b"", b"", b"\r\n"]))
        jobs.append(b"%s 0 %d%s%s%s%s" % (queue, len(data), draw(JOB_TAILS), draw(ENDS), data, data_end))
    return b"%sPUTS %d\r\n%s" % (draw(st.sampled_from([b"", b"REQ 1 "])), len(jobs), b"".join(jobs))


STREAMS = st.lists(
    st.one_of(lines(), puts(), puts(), changes(), batches(), st.binary(max_size=20)), max_size=12,
).map(b"".join)
