"""Each line that the original protocol lacks is read as written, and everything near it is refused."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    DURATION_MS_MAX,
    Change,
    Configure,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    FairChange,
    Get,
    GetWith,
    How,
    JobState,
    Kick,
    Later,
    Move,
    MoveJobs,
    Number,
    OnDup,
    Order,
    PauseQueue,
    Place,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Sched,
    Selector,
    Then,
    Touch,
)
from sockpqd.gateway.limits import AFTER_ITEMS_MAX, BATCH_JOBS_MAX, NUMBERED_BATCH_JOBS_MAX
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import DIGEST_BYTES
from tests.gateway.helpers.parsing import is_refused, read_line, without_row


def waiting(
    operation: Get | GetWith, until_finished: bool, within_ms: int | None = None, bound: bool = False
) -> Command:
    return Command(operation, until_finished=until_finished, within_ms=within_ms, bound=bound)


def named(*arguments: object) -> Command:
    return Command(arguments=arguments)


Q = Get(("q",))
KEY = Selector(queue="q", key="k:1")
LINES: list[tuple[str, object]] = [
    # fair shares
    ("DONE 1 RAN 0.0001", End(1, How.DONE, ran_ms=1)), ("DONE 1 RAN 5 LAST", End(1, How.DONE, last=True, ran_ms=5000)),
    ("LATER 1 YIELD RAN 5", End(1, How.LATER, yielded=True, ran_ms=5000)),
    ("LATER 1 REASON x RAN 5", End(1, How.LATER, reason="x", ran_ms=5000)),
    ("TOUCH 1 RAN 5", Touch(1, ran_ms=5000)),
    ("QUEUE CONFIG q SCHED FAIR", ConfigureQueue("q", QueueChange(sched=Sched.FAIR))),
    ("QUEUE CONFIG q SCHED OFF", ConfigureQueue("q", QueueChange(sched=Sched.FIFO))),
    ("SCHED CONFIG LEVELS 0|5 CAP 1 MULTIPLIER 3 GROUPKEEP 0", Configure(fair=FairChange((0, 5), 1000, 3, 0))),
    # GET
    ("GET q HEAD", GetWith(Q, head=True)), ("GET NUMBER 7 HEAD", GetWith(Get(None), number=7, head=True)),
    ("GETBE q META HEAD", waiting(GetWith(Q, meta=True, head=True), True)),
    ("PEEK 5 HEAD", named(Selector(5), True)), ("PEEK KEY q k:1 HEAD", named(KEY, True)),
    ("PEEK NUMBER 7 HEAD", named(Number(7), True)),
    ("PEEK NUMBER READY HEAD", named("NUMBER", JobState.READY, 1, False, True)),
    ("PEEK q READY HEAD SEQ", named("q", JobState.READY, 1, True, True)),
    ("PEEK KEY READY HEAD", named(Selector(queue="READY", key="HEAD"))),
    ("GET q COUNT 5", GetWith(Q, 5)), ("GET q META", GetWith(Q, meta=True)),
    ("GET * BY RANDOM", GetWith(Get(None), None, Policy.RANDOM)),
    *[(f"GET * BY {policy.name}", GetWith(Get(None), None, policy)) for policy in Policy if policy is not Policy.PLACE],
    ("GET a|b BY PLACE", GetWith(Get(("a", "b")), None, Policy.PLACE)),
    ("QUEUE PAUSE q OUT FOR 2.5", PauseQueue("q", False, True, 2500)),
    ("GET q BY PRIORITY COUNT 1", GetWith(Q, 1, Policy.PRIORITY)), ("GET q IS i", Get(("q",), item="i")),
    ("GET * IS i EXPIRE 5", Get(None, 5000, item="i")), ("GET q EXPIRE 5 THEN DEAD", Get(("q",), 5000, Then.DEAD)),
    ("GET EXPIRE 5 THEN DEAD", Get(None, 5000, Then.DEAD)), ("GET COUNT", Get(("COUNT",))),
    ("GET META META", GetWith(Get(("META",)), meta=True)), ("GET EXPIRE COUNT 5", GetWith(Get(("EXPIRE",)), 5)),
    ("GET q IS COUNT COUNT 5", GetWith(Get(("q",), item="COUNT"), 5)),
    ("GET q EXPIRE=5 META", GetWith(Get(("q",), 5000), meta=True)),
    ("GET a|b BOUND COUNT 10000 EXPIRE 1 THEN DONE META",
     Command(GetWith(Get(("a", "b"), 1000, Then.DONE), 10_000, meta=True), bound=True)),
    ("GETB q WITHIN 20", waiting(Q, False, 20_000)), ("GETB q WITHIN 0", waiting(Q, False, 0)),
    ("GETBE q IS i WITHIN 0.5", waiting(Get(("q",), item="i"), True, 500)),
    ("GETB q COUNT 2 BOUND WITHIN 1", waiting(GetWith(Q, 2), False, 1000, True)), ("GETB q", waiting(Q, False)),
    # DONE, LATER, TOUCH, BURY, KICK
    ("DONE 5", Done(5)), (
        "DONE 5 LAST", End(5, How.DONE, last=True),
    ), ("DONE 5 6 5", End((5, 6, 5), How.DONE)), ("LATER 5", Later(5)),
    ("LATER 5 6", End((5, 6), How.LATER)), ("LATER 5 FIRST", End(5, How.LATER, first=True)),
    ("LATER 5 YIELD DELAY 2 PRI -3", End(5, How.LATER, Due(2000), -3, yielded=True)),
    ("LATER 5 AT 1795130000.5", End(5, How.LATER, Due(at_ms=1_795_130_000_500))),
    ("LATER 5 AT 0", End(5, How.LATER, Due(at_ms=0))),
    ("LATER 5 PRI 0 FIRST YIELD", End(5, How.LATER, None, 0, first=True, yielded=True)),
    ("TOUCH 5", Touch(5)), ("TOUCH 5 EXPIRE 120", Touch(5, 120_000)),
    ("TOUCH 5 EXPIRE 0 THEN DEAD", Touch(5, 0, Then.DEAD)),
    ("LATER 5 6 FIRST", End((5, 6), How.LATER, first=True)), ("TOUCH 5 6", Touch((5, 6))),
    ("TOUCH 5 6 EXPIRE 7 THEN DONE", Touch((5, 6), 7000, Then.DONE)),
    ("LATER 5 REASON why", End(5, How.LATER, reason="why")),
    ("LATER 5 REASON why FIRST", End(5, How.LATER, first=True, reason="why")),
    ("BURY 5", End(5, How.BURY)),
    ("BURY 5 REASON no-such.host", Command(End(5, How.BURY, reason="no-such.host"), arguments=("no-such.host",))),
    ("BURY 5 HERE", End(5, How.BURY, here=True)),
    ("BURY 5 REASON full HERE PRI -7", Command(
        End(5, How.BURY, priority=-7, here=True, reason="full"), arguments=("full",),
    )),
    ("KICK q 5000", Kick("q", 5000)),
    ("KICK q 5 HERE", Kick("q", 5, here=True)),
    ("DELETE NUMBER 5 UNTAKEN", Delete(Number(5), unless_running=True)),
    ("KICK JOB 5", Kick("JOB", 5)),
    ("KICK JOB NUMBER 5", Kick("", 1, selector=Number(5))),
    ("KICK JOB SEQ q_dead 5", Kick("", 1, selector=Place("q_dead", 5))),
    ("GET NUMBER", Get(("NUMBER",))),
    ("GET NUMBER META", GetWith(Get(("NUMBER",)), meta=True)),
    ("GET NUMBER 5", GetWith(Get(None), number=5)),
    ("GET NUMBER 5 EXPIRE 2 THEN DEAD META BOUND",
     Command(GetWith(Get(None, 2000, Then.DEAD), meta=True, number=5), bound=True)),
    # CHANGE, DELETE, MOVE, PEEK without data
    ("CHANGE 5 PRI 1", Change(Selector(5), 1)), ("CHANGE 5", Change(Selector(5))),
    ("CHANGE KEY q k:1 AT 1795200000 PRI 9", Change(KEY, 9, Due(at_ms=1_795_200_000_000))),
    ("CHANGE KEY q k:1 NOITEM DELAY 0", Change(KEY, when=Due(0), no_item=True)),
    ("CHANGE 5 IS i", Change(Selector(5), item="i")),
    ("CHANGE 5 IS DATA", Change(Selector(5), item="DATA")), ("DELETE 5", Delete(Selector(5))),
    ("DELETE KEY q k:1", Delete(KEY)),
    ("CHANGE SEQ SEQ 5 PRI 2 NOITEM", Change(Place("SEQ", 5), 2, no_item=True)),
    ("DELETE SEQ q 18446744073709551615", Delete(Place("q", 2**64 - 1))),
    ("DELETE NUMBER 18446744073709551615", Delete(Number(2**64 - 1))),
    ("CHANGE NUMBER 7 PRI 2 DELAY 5", Change(Number(7), 2, Due(5000))),
    ("PEEK SEQ q 0", Command(arguments=(Place("q", 0),))),
    ("PEEK SEQ READY COUNT 3 SEQ", Command(arguments=("SEQ", JobState.READY, 3, True))),
    ("PEEK q DEAD SEQ", Command(arguments=("q", JobState.DEAD, 1, True))),
    ("MOVE 5 q", Move(5, "q")), ("MOVE 5 DATA", Move(5, "DATA")),
    ("MOVE 5 q DELAY 1 PRI 2", Move(5, "q", 2, Due(1000))),
    ("PEEK 5", named(Selector(5))), ("PEEK KEY q k:1", named(KEY)), ("PEEK q READY", named("q", JobState.READY, 1)),
    ("PEEK KEY DEAD", named("KEY", JobState.DEAD, 1)),
    ("PEEK q RUNNING COUNT 10000", named("q", JobState.RUNNING, 10_000)),
    ("PEEK KEY READY COUNT", named(Selector(queue="READY", key="COUNT"))),
    ("PEEK KEY DELAYED COUNT 2", named("KEY", JobState.DELAYED, 2)),
    # transactions
    ("BEGIN", named()), ("COMMIT", named()), ("ROLLBACK", named()),
    # QUEUE, CONFIG, POLICY
    ("QUEUE CREATE q", ConfigureQueue("q", QueueChange(), create=True)), ("QUEUE CONFIG q", named("q")),
    ("QUEUE CREATE mail EXPIRE 300 THEN LATER TRIES 5 DEAD mail_dead WEIGHT 3",
     ConfigureQueue("mail", QueueChange(300_000, Then.LATER, tries=5, dead="mail_dead", weight=3), create=True)),
    ("QUEUE CONFIG q EXPIRE 0 ORDER TIME TRIES 0 LIMIT 1 ITEMLIMIT 2 CAPACITY 3 MAXDATA 4 BATCH 5 PORTION 6 KEEP 7.5",
     ConfigureQueue("q", QueueChange(
         0, Then.DEFAULT, Order.TIME, 0, None, None, 1, 2, 3, 4, 5, 6, 7500))),
    ("QUEUE CONFIG q ORDER FIFO", ConfigureQueue("q", QueueChange(order=Order.FIFO))),
    ("QUEUE DELETE q", DeleteQueue("q", False)), ("QUEUE DELETE q FORCE", DeleteQueue("q", True)),
    ("QUEUE DELETE q FORCE LEAVE", DeleteQueue("q", force=True, leave=True)),
    ("QUEUE PURGE q ALL", PurgeQueue("q", Purged.ALL)), ("QUEUE PURGE q DEAD", PurgeQueue("q", Purged.DEAD)),
    ("QUEUE PURGE q RUNNING", PurgeQueue("q", Purged.RUNNING)),
    ("QUEUE PURGE q OWN", PurgeQueue("q", Purged.OWN)),
    ("QUEUE PURGE q ENDED", PurgeQueue("q", Purged.ENDED)),
    ("QUEUE MOVE q p", MoveJobs("q", "p", 2**63 - 1)), ("QUEUE MOVE q p COUNT 7", MoveJobs("q", "p", 7)),
    ("QUEUE MOVE q_dead p COUNT 7 DIED q", MoveJobs("q_dead", "p", 7, "q")),
    ("QUEUE MOVE q p SEQ 7", MoveJobs("q", "p", 1, seq=7)),
    ("QUEUE PAUSE q IN", PauseQueue("q", True, False)), ("QUEUE PAUSE q OUT", PauseQueue("q", False, True)),
    ("QUEUE PAUSE q ALL", PauseQueue("q", True, True)), ("QUEUE RESUME q", PauseQueue("q", False, False)),
    ("QUEUE STAT q", named("q")), ("QUEUE LIST ma*", named("ma")),
    ("CONFIG", named()), ("CONFIG EXPIREDEFAULT DONE", Configure(Then.DONE)),
    ("CONFIG AUTOCREATE OFF", Configure(autocreate=False)),
    ("CONFIG POLICY PRIORITY", Configure(policy=Policy.PRIORITY)), ("CONFIG GRACE 0.5", Configure(grace_ms=500)),
    ("CONFIG SESSIONTTL 86400", Configure(session_ttl_ms=86_400_000)),
    ("CONFIG FASTEMPTY ON", Configure(fast_empty=True)),
    ("POLICY PRIORITY", named(Policy.PRIORITY)),
    # PULSE: the longest name is that of the pulse of the queue with the longest name
    ("PULSE STAT OFF_", named("OFF_")), ("PULSE STAT queue:OFF", named("queue:OFF")),
    (f"PULSE STAT queue:{'q' * 255}", named(f"queue:{'q' * 255}")),
]


@pytest.mark.parametrize(("line", "request_"), LINES)
def test_a_line_is_read_as_what_it_says(line: str, request_: Command) -> None:
    assert without_row(read_line(line)) == (request_ if isinstance(request_, Command) else Command(request_))


# ---- lines with data

def filled(line: str) -> Command:
    """Return the command of a line that three bytes follow, with these."""
    command = without_row(read_line(line))
    assert command.length == 3
    command.fill(b"abc")
    return command


WAIT = Get(("o",), item="i", item_of_put=True)
PUTS: list[tuple[str, PutWith | Command]] = [
    ("KEY a1", PutWith(Put("q", 0, b"abc"), key="a1")), ("DELAY 10", PutWith(Put("q", 0, b"abc"), Due(10_000))),
    ("KEY a1 ONDUP REPLACE", PutWith(Put("q", 0, b"abc"), key="a1", on_dup=OnDup.REPLACE)),
    ("KEY ONDUP ONDUP FAIL", PutWith(Put("q", 0, b"abc"), key="ONDUP")),
    ("AT 1795130000 TTL 60 EVERY 5", PutWith(Put("q", 0, b"abc"), Due(at_ms=1_795_130_000_000), 60_000, 5000)),
    ("NEW TTL 0", PutWith(Put("q", 0, b"abc", None, True), ttl_ms=DURATION_MS_MAX)),
    ("IS KEY KEY k", PutWith(Put("q", 0, b"abc",
    "KEY"), key="k")),
    ("EVERY 60 AFTER a|b|a TRIES 1", PutWith(Put("q", 0, b"abc"), None, None, 60_000, ("a", "b"), tries=1)),
    ("IS i WAIT o WITHIN 20", Command(Put("q", 0, b"abc", "i"), wait=WAIT, within_ms=20_000)),
    ("IS i WAIT o EXPIRE 5 THEN DEAD KEY k WITHIN 0",
     Command(PutWith(Put("q", 0, b"abc", "i"), key="k"), within_ms=0,
             wait=Get(("o",), 5000, Then.DEAD, "i", item_of_put=True))),
    ("NEW WAIT EXPIRE DELAY 1",
     Command(PutWith(Put("q", 0, b"abc", None, True), Due(1000)), wait=Get(("EXPIRE",), item_of_put=True))),
]


@pytest.mark.parametrize(("tail", "request_"), PUTS)
def test_a_put_is_read_as_what_it_says(tail: str, request_: PutWith | Command) -> None:
    assert filled(f"PUT q 0 3 {tail}") == (request_ if isinstance(request_, Command) else Command(request_))


def test_change_and_move_take_data() -> None:
    for line, request in (
        ("CHANGE 5 DATA 3", Change(Selector(5), data=b"abc")), ("MOVE 5 q DATA 3", Move(5, "q", data=b"abc")),
        ("CHANGE KEY q DATA IS i PRI 1 DATA 3", Change(Selector(queue="q", key="DATA"), 1, None, "i", data=b"abc")),
        ("MOVE 5 DATA DELAY 0 DATA 3", Move(5, "DATA", None, Due(0), b"abc")),
    ):
        assert filled(line) == Command(request)


def test_plain_lines_stay_plain() -> None:
    """They are the ones that must be fast, and that a node of an older version has to understand."""
    for tail in ("", " NEW", " IS i", " IS i WAIT o", " NEW WAIT o EXPIRE 5 THEN DONE"):
        assert type(read_line(f"PUT q 0 3{tail}").operation) is Put
    for line, kind in (("GET", Get), ("GET q|r EXPIRE 5 THEN LATER", Get), ("DONE 5", Done), ("LATER 5", Later)):
        assert type(read_line(line).operation) is kind
    assert type(read_line("GETB * EXPIRE 5").operation) is Get


OPTIONS = [
    ("GETB q", ["EXPIRE 5 THEN DEAD", "IS i", "COUNT 3", "WITHIN 2", "BY PRIORITY", "META", "BOUND"]),
    ("PUT q 0 3 IS i WAIT o", ["KEY k ONDUP IGNORE", "DELAY 1", "EVERY 2", "TTL 3", "TRIES 4", "AFTER a|b",
    "WITHIN 5"]),
    ("LATER 5", ["DELAY 1", "PRI 2", "YIELD"]), ("CHANGE 5", ["AT 1", "PRI 2", "IS i"]), ("MOVE 5 q", ["AT 1",
    "PRI 2"]),
    ("QUEUE CREATE q", ["TRIES 5 DEAD d", "EXPIRE 5 THEN DEAD", "LIMIT 2", "KEEP 3"]),
]


@pytest.mark.parametrize(("line", "options"), OPTIONS)
def test_options_come_in_any_order_and_each_at_most_once(line: str, options: list[str]) -> None:
    first = read_line(" ".join([line, *options]))
    for some in itertools.permutations(options, min(len(options), 4)):
        assert not is_refused(" ".join([line, *some])), some
    assert all(
        read_line(" ".join([line, *options[at:], *options[:at]])) == first for at in range(1, len(options))
    )
    for option in options:
        assert is_refused(" ".join([line, option, option])), option
        assert is_refused(" ".join([line, *options, option])), option


# What none of the lines may be: said twice, without its value, out of range, against itself, or not there (yet).
BAD = [
    *(f"GET q {tail}" for tail in (
        "COUNT", "COUNT 0", "COUNT 10001", "COUNT -1", "COUNT x", "COUNT 5 COUNT 5", "IS", "IS a|b", "IS *", "WITHIN 5",
        "BY",
        "BY CHANCE", "BY FAIR BY RR", "BY LIGHT", "BY random", "META META", "META 5", "GROUP g",
        "THEN DEAD", "EXPIRE 5 META THEN LATER",
        "EXPIRE 5 EXPIRE=5", "EXPIRE=", "count 5", "IS i IS j", "EXPIRE -1 META", "BOUND COUNT",
    )),
    "GET META 5", "GET COUNT 5", "GET EXPIRE 5 META", "GET EXPIRE 5 COUNT 5", "GET WITHIN 5", "GETB WITHIN 5",
    "DELETE 5 UNTAKEN", "DELETE KEY q k UNTAKEN",
    "GET * BY PLACE", "QUEUE PAUSE q IN FOR 2", "QUEUE PAUSE q OUT FOR -1", "QUEUE PAUSE q OUT FOR",
    "GETB q WITHIN", "GETB q WITHIN -1", "GETB q WITHIN 5 WITHIN 5", "GETB q WITHIN 4294967296", "GETB a|*",
    "GETBE q COUNT",
    *(f"PUT q 0 3 {tail}" for tail in (
        "KEY", "KEY k/1", "KEY k KEY k", "ONDUP FAIL", "KEY k ONDUP", "KEY k ONDUP KEEP", "KEY k DELAY 1 ONDUP FAIL",
        "DELAY",
        "DELAY -1", "DELAY x", "DELAY 1 DELAY 1", "DELAY 1 AT 1", "AT -1", "AT", "AT 99999999999999999999", "EVERY",
        "EVERY 0",
        "EVERY 0.0000", "TTL", "TTL -1", "TRIES", "TRIES 0", "TRIES -1", "TRIES 2147483648", "AFTER", "AFTER a||b",
        "AFTER |",
        "WITHIN 5", "NEW WITHIN 5", "KEY k NEW", "DELAY 1 IS i", "DELAY 1 WAIT o", "KEY k IS i WAIT o", "WAIT o",
        "IS i IS j",
        "NEW NEW", "NEW IS i", "IS i NEW", "IS i AFTER a|i", "GROUP", "GROUP a|b",
        "PRI 1", "IS i WAIT o KEY k EXPIRE 5", "BOUND",
        "IS i WAIT o|p", "IS i WAIT o WAIT o", "IS i WAIT o WITHIN 1 WITHIN 1", "IS i WAIT o THEN DEAD", "5", "META",
    )),
    f"PUT q 0 3 KEY {'k' * 129}", "PUT q 0 3 AFTER " + "|".join(f"i{n}" for n in range(AFTER_ITEMS_MAX + 1)),
    *(f"DONE {tail}" for tail in (
        "", "LAST", "1 LAST 2", "1 2 LAST", "1 LAST LAST", "1 RAN", "1 RAN -1",
        "1 2 RAN 5", "1 SLOW SLOW", "1 SLEEP",
        "1 SLOW SLEEP 5", "1 2 x",
        "x 2",
        "1 18446744073709551616", " ".join(["1"] * (BATCH_JOBS_MAX + 1)),
    )),
    *(f"LATER {tail}" for tail in (
        "", "1 FIRST DELAY 1", "1 AT 1 FIRST", "1 DELAY 1 AT 1", "1 DELAY", "1 PRI", "1 PRI x", "1 FIRST FIRST",
        "1 YIELD YIELD",
        "1 RAN", "1 2 RAN 5", "1 SLOW SLOW", "1 SLEEP x",
        "1 REASON", "1 REASON a/b", "1 2 REASON x", "1 2 FIRST FIRST", "1 2 PRI 5",
        "1 FIRST 2", "x FIRST", "1 LAST",
        "1 PRI 9223372036854775808", " ".join(["1"] * (BATCH_JOBS_MAX + 1)),
    )),
    "TOUCH", "TOUCH x", "TOUCH 1 2 x", "TOUCH 1 2 EXPIRE", "TOUCH 1 EXPIRE 5 2",
    "TOUCH 1 EXPIRE", "TOUCH 1 THEN DONE", "TOUCH 1 EXPIRE 5 THEN", "TOUCH 1 RAN", "TOUCH 1 2 RAN 5",
    "TOUCH 1 EXPIRE 5 EXPIRE 5", "TOUCH 1 EXPIRE 5 THEN NOW",
    "BURY", "BURY x", "BURY 1 2", "BURY 1 REASON", "BURY 1 REASON a/b",
    "BURY 1 REASON a b", f"BURY 1 REASON {'x' * 65}",
    "BURY 1 PRI 5", "BURY 1 HERE PRI", "BURY 1 HERE HERE", "BURY HERE", "GET NUMBER 5 COUNT 2", "GET NUMBER 5 IS i",
    "GET NUMBER 99999999999999999999", "KICK q 1 THERE", "KICK JOB NUMBER x", "KICK JOB NUMBER", "KICK q HERE",
    "KICK", "KICK q", "KICK q 0", "KICK q -1", "KICK q 1 2", "KICK a|b 1", "KICK q 9223372036854775808",
    "CHANGE", "CHANGE x", "CHANGE KEY q", "CHANGE KEY q k/1", "CHANGE 5 PRI", "CHANGE 5 IS i NOITEM",
    "CHANGE 5 DELAY 1 AT 1",
    "CHANGE 5 DATA", "CHANGE 5 DATA x", "CHANGE 5 DATA 3 PRI 1", "CHANGE 5 DATA 3 DATA 3", "CHANGE 5 NOITEM NOITEM",
    "CHANGE 5 DATA 3 IS DATA", "CHANGE 5 6", "CHANGE 5 KEY k", "CHANGE 5 TTL 5",
    "DELETE", "DELETE x", "DELETE 1 2", "DELETE KEY q", "DELETE KEY q k x", "DELETE q k", "DELETE KEY a|b k",
    "MOVE", "MOVE 1", "MOVE x q", "MOVE 1 a|b", "MOVE 1 q DATA", "MOVE 1 q DATA 3 PRI 1", "MOVE 1 q IS i",
    "MOVE 1 q PRI",
    "MOVE 1 q DELAY 1 DELAY 1", "MOVE KEY q k r", "MOVE 1 q 5",
    "PEEK", "PEEK x", "PEEK q", "PEEK q WAITING", "PEEK q ALL", "PEEK q READY COUNT", "PEEK q READY COUNT 0",
    "PEEK q READY COUNT 10001", "PEEK q READY 5", "PEEK KEY q k x", "PEEK KEY q k/1", "PEEK a|b READY", "PEEK 1 2",
    "PEEK 1 2 3",
    "PUTS", "PUTS 0", "PUTS x", "PUTS 10001", "PUTS 1 2", "PUTS -1", "BEGIN 1", "COMMIT 1", "ROLLBACK x",
    "QUEUE", "QUEUE CREATE", "QUEUE CREATE a|b", "QUEUE CREATE *", "QUEUE create q", "QUEUE LIST ma",
    "QUEUE LIST a* b*",
    *(f"QUEUE {verb} q {tail}" for verb in ("CREATE", "CONFIG") for tail in (
        "EXPIRE", "EXPIRE -1", "THEN DONE", "EXPIRE 5 THEN", "ORDER", "ORDER LIFO", "TRIES", "TRIES -1",
        "TRIES 2147483648",
        "TRIES 5 DEAD", "TRIES 5 DEAD q", "DEAD d", "DEAD d TRIES 5", "TRIES 5 LIMIT 1 DEAD d", "WEIGHT 0",
        "WEIGHT 1000001",
        "LIMIT", "LIMIT -1", "LIMIT 5 LIMIT 5", "LIMIT 2147483648", "ITEMLIMIT x", "CAPACITY", "MAXDATA -1",
        "BATCH 10001",
        "PORTION 0", "PORTION 1001", "KEEP", "KEEP -1", "RATE 0 PER 1", "RATE 10",
        "SCHED", "SCHED LIFO", "PULSE queue:p", "ALARM -1",
        "LIMIT 5 FOO", "5",
    )),
    "QUEUE CONFIG", "QUEUE DELETE", "QUEUE DELETE q NOW", "QUEUE DELETE q FORCE x", "QUEUE PURGE q",
    "QUEUE PURGE q TAKEN", "QUEUE DELETE q LEAVE", "QUEUE DELETE q LEAVE FORCE", "QUEUE MOVE q", "QUEUE MOVE q q",
    "QUEUE MOVE q p 7", "QUEUE MOVE q p COUNT 0", "QUEUE MOVE q p COUNT", "QUEUE MOVE q p DIED",
    "QUEUE PURGE q READY DEAD", "QUEUE PAUSE q", "QUEUE PAUSE q BOTH", "QUEUE PAUSE q IN OUT", "QUEUE RESUME",
    "QUEUE RESUME q IN",
    "QUEUE STAT", "QUEUE STAT q r", "QUEUE STAT *",
    "CONFIG GRACE", "CONFIG 5", "CONFIG GRACE -1", "CONFIG GRACE 1 FASTEMPTY ON", "CONFIG EXPIREDEFAULT DEAD",
    "CONFIG FOO 1",
    "CONFIG AUTOCREATE MAYBE", "CONFIG POLICY BEST", "CONFIG SESSIONTTL 0.5", "CONFIG SESSIONTTL 86401",
    "CONFIG FASTEMPTY 1",
    "POLICY", "POLICY BEST", "POLICY RANDOM RANDOM",
]


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:80])
def test_what_is_near_a_right_line_is_refused(line: str) -> None:
    assert is_refused(line)


# ---- REQ

def test_req_goes_with_what_changes_something() -> None:
    verbs = {line.split()[0] for line, _ in LINES}
    assert verbs >= {"TOUCH", "BURY", "KICK", "CHANGE", "DELETE", "MOVE", "QUEUE", "CONFIG", "COMMIT"}
    for line, _ in LINES:
        plain = read_line(line)
        if (plain.operation is None and line != "COMMIT") or "COUNT 10000" in line:
            assert is_refused(f"REQ 7 {line}"), line
        else:
            numbered = read_line(f"REQ 7 {line}")
            assert numbered.number == 7
            assert isinstance(numbered.digest, bytes)
            assert len(numbered.digest) == DIGEST_BYTES
            assert replace(numbered, number=0, digest=None) == plain


def test_req_gives_data_to_what_has_some() -> None:
    digests = set()
    for line in ("PUT q 0 3", "PUT q 0 3 KEY k", "PUT q 0 3 KEY l", "CHANGE 5 DATA 3", "MOVE 5 q DATA 3"):
        numbered = filled(f"REQ 7 {line}")
        assert numbered.number == 7
        assert numbered.operation == filled(line).operation
        digests.add(numbered.digest)
    assert len(digests) == 5
    assert all(isinstance(digest, bytes) for digest in digests)


def test_req_goes_with_so_many_jobs_as_an_answer_can_be_stored_of() -> None:
    most, more = NUMBERED_BATCH_JOBS_MAX, NUMBERED_BATCH_JOBS_MAX + 1
    for command in ("GET q COUNT {}", "GETB q COUNT {}", "GETBE q COUNT {} BOUND", "GET q COUNT {} BOUND"):
        assert not is_refused("REQ 1 " + command.format(most))
        assert is_refused("REQ 1 " + command.format(more))
    for verb in ("DONE", "LATER"):
        assert not is_refused(f"REQ 1 {verb} " + "1 " * most)
        assert is_refused(f"REQ 1 {verb} " + "1 " * more)
    # What is too much is read to its end.
    assert [read_line(f"REQ 1 PUTS {count}").answer for count in (most, more)] == [
        None, b"400 Bad Arguments: more than 4096 jobs behind REQ\r\n"]


def test_replication_in_the_originals_way_knows_no_new_words() -> None:
    sync = read_line("SYNC PUT q 0 3 IS i")
    assert (sync.length, sync.answer) == (3, responses.NOT_SUPPORTED)
    assert read_line("SYNC PUT q 0 3 IS i WAIT o").length == 3
    for line in ("SYNC PUT q 0 3 KEY k", "SYNC DONE 1 2", "SYNC DONE 1 LAST", "SYNC LATER 1 2", "SYNC LATER 1 FIRST",
                 "SYNC PUT q 0 3 IS i WAIT o WITHIN 1"):
        assert is_refused(line)
