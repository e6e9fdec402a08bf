"""A data directory in which there is some of everything that a node can remember: how it is recorded, and described.

    python -m tests.upgrade.scenario NAME       makes data/scenario/NAME.tar.xz and data/scenario/NAME.json

It is the directory of a real node n1 that was killed: one snapshot, the whole journal, and the same fixed scenario once
before the snapshot and once behind it. NAME.json says what a program must find in it, in words of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_args

from msgspec.structs import astuple

from devcluster.cluster import LocalCluster, say
from sockpqd.cluster import ClusterListener, ClusterNode, Member, NodeSettings
from sockpqd.cluster.snapshots.snapshot_file import SnapshotFile
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import (
    FIRST_LEVEL,
    Applied,
    JobState,
    Machine,
    Operation,
    Pulse,
    QueueSettings,
    Request,
    encode_entry,
)
from sockpqd.core.handlers.dispatch import LEVELS
from tests.upgrade.at_once import applied_at_once
from tests.upgrade.directories import DATA, SETTLED_S, pack, unpack
from tests.wire import Wire

SCENARIO = DATA / "scenario"
LONG = "EXPIRE 3000000000"      # 95 years
JOBS_MAX = 50           # of one queue and state in a description
# Of QUEUE STAT, not in all formats.
MORE_LINES = (
    "BURIED", "TOTAL_DELETED", "TOTAL_PAUSES", "PAUSE_S", "PAUSE_LEFT_S", "RETAINED", "RETAINED_BYTES",
)
LARGE_BYTES = 600_000       # it goes into the log in fragments
ANSWER_LISTS = ("PUTS", "COMMIT", "TAKEN")

# What is left out of the journal: Resume, which a node writes after its disk was full, and RaiseLevel, as there is one
# level only.
NOT_RECORDED = {"Resume", "RaiseLevel"}


class Connection:
    """Speaks the protocol, one command at a time."""

    def __init__(self, server: str) -> None:
        self.wire = Wire(server, 60.0)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self.wire.close()

    def send(self, line: str, data: str = "") -> None:
        """Send a command whose answer is read later or never. `data`: all that follows the line."""
        self.wire.send(line, data.encode("latin-1"))

    def ask(self, line: str, data: str = "") -> str:
        """Send a command; returns all of its answer."""
        self.send(line, data)
        return self.answer(line)

    def answer(self, line: str) -> str:
        """Return the whole answer to a command."""
        words = line.split()
        words = words[2:] if words[0] == "REQ" else words
        answer = first = self.wire.line()
        if not first.startswith("200 OK "):
            return answer
        several = words[0] in ("DONE", "LATER", "TOUCH") and len(words) > 2 and words[2].isdigit()
        if several or words[0] in ANSWER_LISTS or "COUNT" in words:
            jobs = [self.wire.line() for _ in range(int(first.split()[2]))]
            length = sum(int(job.split()[3]) for job in jobs) if "COUNT" in words else 0
            return "\n".join((answer, *jobs)) + self._data(length)
        if words == ["MAP"]:
            return answer + self._data(int(first.split()[3]))
        if words[0].startswith("GET") or (words[0] == "SNAPSHOT"):
            return answer + self._data(int(first.split()[5 if words[0] != "SNAPSHOT" else 2]))
        return answer

    def _data(self, length: int) -> str:
        return "\n" + self.wire.exactly(length).decode("latin-1") if length else ""


class Story:
    """The fixed scenario. The names of its queues, items and users begin with `part`."""

    def __init__(self, cluster: LocalCluster, part: str) -> None:
        self.part = part
        self.asked: list[dict[str, str]] = []       # numbered commands whose answers the cluster must still know
        self.keys: list[tuple[str, str]] = []       # of finished jobs, with their queues
        self._cluster = cluster
        self._server = cluster.server("n1")
        self.connection = Connection(self._server)

    def say(self, line: str, data: str = "", connection: Connection | None = None) -> str:
        """Send a command that must not be refused; `~` stands for the part."""
        answer = (connection or self.connection).ask(line.replace("~", self.part), data.replace("~", self.part))
        assert answer.startswith(("200", "202", "206")), (line, answer)
        return answer

    def put(self, arguments: str, data: str = "") -> str:
        """Put a job: queue, priority and options, without a length."""
        queue, priority, *options = arguments.split()
        data = data or f"job for ~{queue}".replace("~", self.part)
        return self.say(" ".join((f"PUT ~{queue} {priority} {len(data)}", *options)), data)

    def take(self, arguments: str) -> str:
        """Take a job; returns its id."""
        return self.say(f"GET ~{arguments}").split()[3]

    def tell(self) -> None:
        """Play the whole story: each part puts something into the state."""
        self._settings()
        self._users()
        self._waiting_jobs()
        self._finished_and_dead_jobs()
        self._jobs_in_their_places()
        self._groups()
        self._transactions()
        self._sessions()
        self._pulses()
        self._fair_shares()
        self._groups_by()
        self._topics()
        self._numbers()
        self._workers()
        self._moved_and_removed()
        self._failed_items()
        self._tenants()
        self.say("CONFIG FASTEMPTY ON")         # from now on such an answer is kept no more
        self._cluster_map()
        self._things_that_end()

    def _settings(self) -> None:
        self.say("QUEUE CREATE ~mail EXPIRE 3000000000 THEN DEAD TRIES 2 DEAD ~graves KEEP 3000000000 WEIGHT 3")
        self.say("QUEUE CREATE ~timed ORDER TIME ITEMLIMIT 1 LIMIT 5")
        self.say("QUEUE CREATE ~small CAPACITY 2 MAXDATA 10 BATCH 2")
        self.say("QUEUE CREATE ~after PORTION 1")
        self.say("QUEUE CREATE ~alarmed ALARM 3")
        self.say("QUEUE CONFIG ~alarmed ALARM 2 TTL 3000000000")
        self.say("QUEUE CREATE ~newest CAPACITY 2 OVERFLOW DROPOLDEST")
        self.say("QUEUE CREATE ~lasting IDLE 3000000000")
        self.say("QUEUE CREATE ~idling IDLE 1")         # it will be deleted
        self.say("QUEUE CREATE ~gone")
        self.say("QUEUE DELETE ~gone")
        for queue, where in (("shut", "ALL"), ("in", "IN"), ("out", "OUT"), ("open", "ALL")):
            self.say(f"QUEUE PAUSE ~{queue} {where}")
        self.say("QUEUE RESUME ~open")
        self.say("QUEUE CONFIG ~open EXPIRE 0 THEN LATER")
        self.say("CONFIG GRACE 600")
        self.say("CONFIG SESSIONTTL 86400")
        self.say("CONFIG POLICY PRIORITY")
        self.say("CONFIG EXPIREDEFAULT DONE")

    def _cluster_map(self) -> None:
        version, cluster_id = int(self.say("MAP").split()[2]), self.say("CLUSTER ID").split()[2]
        text = (
            f"CLUSTER one {cluster_id} h:1\nCLUSTER two 00c0ffee00c0ffee h:2,[::1]:3\n"
            "RULE ~two. two\nRULE ~none. -\nMOVING ~old. two one\nSPREAD ~all\n"
        ).replace("~", self.part)
        self.say(f"MAP SET {version + 1} {len(text)}", text)

    def _users(self) -> None:
        key = f"key-of-{self.part}".encode().ljust(16, b".").hex()
        for user, rights in (("mailer", "put:mail*,get:mail*"), ("boss", "admin"), ("nobody", "get:mail*")):
            self.say(f"USER SET ~{user} {rights} {key}")
        self.say("USER DELETE ~nobody")

    def _waiting_jobs(self) -> None:
        for priority in (0, 5, -9223372036854775808, 9223372036854775807, 0):
            self.put(f"mail {priority}")
        for _ in range(2):
            self.put("alarmed 0")       # DEPTH is reported
        self.put("mail 1 IS ~order")
        self.put("mail 1 NEW")
        self.put("mail 2 IS ~order KEY a1 TTL 3000000000 TRIES 7")
        self.put("mail 3 DELAY 3000000000 KEY a2")
        self.put("mail 3 AT 4000000000 KEY a2 ONDUP REPLACE")
        self.put("mail 3 KEY a2 ONDUP IGNORE")
        self.put("timed 0 IS ~order AT 1600000000")
        self.put("timed 0 IS ~order AT 1500000000 KEY early")
        self.put("timed 0 EVERY 3600 KEY hourly")
        self.put("timed 9 EVERY 86400 AT 4000000000 KEY daily")
        self.put("scratch 0 TTL 0.05")
        self.say("PUTS 3", "~mail 0 3 KEY p1\r\nabc~mail 0 0 WAIT x\r\n~scratch 4 2 DELAY 3000000000\r\nde")
        self.say("CHANGE KEY ~mail p1 PRI 6")
        self.say("DELETE KEY ~mail a2")
        self.put("mail 3 AT 4000000000 KEY a2")

    def _finished_and_dead_jobs(self) -> None:
        self.put("large 0", "x" * LARGE_BYTES)
        self.say(f"DONE {self.take('large')}")
        for key in ("d1", "d2"):
            self.put(f"mail 50 KEY {key}")
            self.say(f"DONE {self.take('mail')}")
            self.keys.append((f"{self.part}mail", key))
        for word in "BURY", "LATER":
            self.put(f"mail 60 KEY {word}")
            self.say(f"{word} {self.take('mail')}")
        self.say(f"LATER {self.take('mail')}")          # it was its second attempt
        self.put("mail 70 IS ~lost")
        self.say(f"BURY {self.take('mail')} REASON no_such_address")
        self.say("KICK ~mail 1")
        self.say(f"LATER {self.take(f'mail {LONG}')} PRI -3 FIRST")
        self.say(f"LATER {self.take('mail')} YIELD DELAY 3000000000")
        self.take(f"mail {LONG} THEN DONE")
        self.take("mail EXPIRE 600 THEN LATER")
        self.say(f"TOUCH {self.take('mail EXPIRE 30')} {LONG} THEN DEAD")
        self.say(f"CHANGE {self.take('mail')} PRI 8 IS ~other DATA 7", "changed")
        self.put("open 0")
        self.take("open")
        self.put("open 0 KEY moved")
        self.say(f"MOVE {self.take('open')} ~mail PRI 11")
        for _ in range(4):
            self.put("scratch 20")
        several = " ".join(self.take("scratch") for _ in range(2))
        self.say(f"DONE {several}")
        several = " ".join(self.take("scratch") for _ in range(2))
        self.say(f"LATER {several}")
        self.say(f"GET ~scratch|~open COUNT 2 META {LONG} BY RANDOM")
        hourly = self.take("timed BY PRIORITY")
        self.say(f"DONE {hourly}")
        self.put("periodic 0 EVERY 60")
        self.say(f"DONE {self.take('periodic')} LAST")
        self.put("periodic 0 EVERY 3000000000 KEY k")
        self.say(f"DONE {self.take('periodic')}")
        self.put("purged 0")
        self.put("purged 0")
        self.say("QUEUE PURGE ~purged ALL")
        self.put("deleted 0")
        self.say("QUEUE DELETE ~deleted FORCE")

    def _jobs_in_their_places(self) -> None:
        for _ in range(3):
            self.put("placed 0")
            self.put("newest 0")        # the last one drops the first
        for line, data in (("CHANGE SEQ ~placed % PRI -1 DATA 3", "low"), ("DELETE SEQ ~placed %", "")):
            place = self.say("PEEK ~placed READY COUNT 1 SEQ").splitlines()[1].split()[-1]
            self.say(line.replace("%", place), data)
        for _ in range(3):
            self.put("placed 1")
        several = " ".join(self.take("placed") for _ in range(2))
        self.say(f"TOUCH {several} EXPIRE 600 THEN DEAD")
        self.say(f"LATER {several} FIRST")
        self.say(f"LATER {self.take('placed')} PRI 2 REASON too_busy")
        self.say(f"GET ~placed|~newest {LONG} BY RR")
        self.say(f"GET ~placed|~newest {LONG} COUNT 2 META BY RR")
        oldest = self.say(f"GET * {LONG} BY OLDEST").split()[3]         # from now on the state has an index for it
        self.say(f"LATER {oldest} FIRST YIELD")

    def _moved_and_removed(self) -> None:
        for _ in range(2):
            self.put("source 0")
        self.say("QUEUE MOVE ~source ~target")
        self.put("source 1")
        self.say("QUEUE PURGE ~source OWN")
        self.say("QUEUE CREATE ~abandoned TRIES 1")
        self.put("abandoned 0")
        self.say(f"LATER {self.take('abandoned')}")
        self.say("QUEUE DELETE ~abandoned FORCE LEAVE")

    def _failed_items(self) -> None:
        self.put("album 0 IS ~album")
        self.put("album 1 AFTER ~album WHEN FAILED")
        self.say(f"BURY {self.take('album')}")
        self.say("ITEM RETRY ~album")
        self.put("album 2 IS ~other_album KEY awaited")
        self.put("album 3 AFTER ~album|~other_album WHEN END")
        assert self.connection.ask(f"AWAIT KEY {self.part}album unknown") == "404 Job Not Found"
        self.say("ITEM HOLD ~held EXPIRE 3000 THEN RELEASE")
        self.put("album 4 AFTER ~held")
        self.say("ITEM HOLD ~released")
        self.say("ITEM RELEASE ~released")
        self.put("album 5 IS ~withdrawn")
        self.put("album 6 AFTER ~withdrawn")
        self.say("ITEM CANCEL ~withdrawn REASON enough")

    def _tenants(self) -> None:
        self.say("GROUP CONFIG ~red LIMIT 7 RATE 100 PER 60")
        self.say("GROUP CONFIG ~green LIMIT 1")
        self.say("GROUP DELETE ~green")
        self.say("GROUP PAUSE ~blue")
        self.say("GROUP PAUSE ~yellow FOR 3000")
        self.say("GROUP RESUME ~blue")
        self.say("GROUP PAUSE ~blue")

    def _groups(self) -> None:
        self.put("mail 0 IS ~group")
        self.put("other 0 IS ~group")
        for _ in range(3):
            self.put("other 1 AFTER ~group|~order KEY last ONDUP IGNORE")
        self.take(f"other IS ~group {LONG}")
        self.put("mail -1 IS ~answered WAIT ~other WITHIN 0.01", "what?")
        assert self.connection.answer("PUT") == "408 Wait Timeout"

    def _transactions(self) -> None:
        self.put("mail 90 KEY first")
        number = self.take("mail")
        self.say("BEGIN")
        for line, data in (
            (f"TOUCH {number}", ""), ("PUT ~mail 0 2 KEY both", "ok"), (f"DONE {number}", ""), ("PUT ~other 2 2", "ok"),
        ):
            self.say(line, data)
        self.say("COMMIT")
        self.say("BEGIN")
        self.say("PUT ~other 2 2", "no")
        self.say("DONE 999999")
        assert self.connection.ask("COMMIT") == "409 Aborted 2 404 Job Not Found"

    def _sessions(self) -> None:
        session = self._session()
        say = session.ask
        self.put("bound 0", "bound")
        self.put("bound 0", "bound as well")
        for line, data in (
            ("PUT ~small 0 3", "abc"), ("PUT ~small 0 3 NEW", "abc"), ("PUT ~small 0 3", "full"[:3]),
            ("PUT ~small 0 11", "eleven byte"), ("PUT ~in 0 1", "x"), ("DONE 999999", ""),
            ("QUEUE CREATE ~small", ""), ("QUEUE DELETE ~small", ""), ("QUEUE RESUME ~nowhere", ""),
            ("QUEUE CREATE ~idle", ""), ("QUEUE PURGE ~in ALL", ""), ("CONFIG POLICY PRIORITY", ""),
            ("PUT ~mail 0 1 KEY d1", "x"), ("PUT ~mail 0 1 KEY a1 ONDUP IGNORE", "x"),
            ("PUT ~mail 0 1 KEY a1 ONDUP REPLACE", "x"), ("PUT ~mail 0 1 KEY a2 ONDUP REPLACE", "x"),
            ("GET ~nothing", ""), ("GET ~out", ""),
            (f"GET ~bound {LONG} BOUND", ""), (f"GET ~small {LONG} COUNT 2", ""), ("CLONE 3", "abc"),
            ("PUTS 2", "~other 0 1\r\na~in 0 1\r\nb"), ("PUT ~run 0 1 KEY r EVERY 3600", "x"), (f"GET ~run {LONG}", ""),
            ("CHANGE KEY ~run r PRI 7", ""), ("KICK ~mail 1", ""), (f"GET ~bound {LONG} META", ""),
        ):
            self._number(session, line, data)
        given_back = self.asked[-1], self.asked[-4]     # a repetition would take another one
        run, bound = (self._id_of(line) for line in ("GET ~run", "GET ~bound"))
        for line in (f"TOUCH {bound}", f"TOUCH {bound} EXPIRE 0", f"DONE {run}", f"LATER {bound} PRI 4"):
            self._number(session, line)
        self.asked = [asked for asked in self.asked if asked not in given_back]
        for _ in range(3):
            self.put("three 0")
        numbers = [self.take("three") for _ in range(3)]
        self._number(session, f"DONE {numbers[0]} 999999")
        self._number(session, f"LATER {numbers[1]} 999999")
        for last in ("999999", numbers[2]):
            assert say("BEGIN") == "200 OK"
            for line in ("PUT ~three 0 1\r\nx", f"DONE {last}"):
                assert say(line.replace("~", self.part)) == "202 Queued"
            self._number(session, "COMMIT", repeatable=False)
        self._number(session, "PUT ~three 0 1 NEW WAIT ~empty WITHIN 0.01", "x", repeatable=False)
        with Connection(self._server) as other:
            self.say(f"SESSION {self._sid}", connection=other)
            self.say("PING", connection=other)
        session.close()
        self._session("TTL 60").close()
        short = self._session("TTL 1")
        self.put("bound 9", "comes back")
        self.say(f"GET ~bound BOUND {LONG}", connection=short)
        short.close()                                                   # the session ends soon, and its job goes back
        for line in ("SESSION CLOSE", "SESSION CLOSE RELEASE", "SESSION CLOSE RELEASE FIRST"):
            closed = self._session()
            self.put("closed 0")
            self.say(f"GET ~closed BOUND {LONG}", connection=closed)
            self.say(line, connection=closed)
            closed.close()
        inbox = self._session()
        self.say("QUEUE CREATE ~inbox BOUND", connection=inbox)
        inbox.close()                                                   # the session lives on
        ended = self._session()
        self.say("QUEUE CREATE ~outbox BOUND", connection=ended)
        ended.close()
        self.say(f"SESSION END {self._sid.split('_')[0]}")
        with Connection(self._server) as mailer:
            secret = f"key-of-{self.part}".ljust(16, ".")
            self.say(f"AUTH ~mailer {secret}", connection=mailer)
            self.say("SESSION", connection=mailer)

    def _pulses(self) -> None:
        self.say("PULSE CREATE ~together RATE 5 PER 86400 STEP 2 MAXPAUSE 60 MAXRUN 3 TOGETHER MAXWAIT 0")
        self.say("PULSE CONFIG ~together STEP 3")
        self.say("PULSE CREATE ~shared RATE 9 PER 86400 MAXRUN 86400")
        for result in ("OK", "SLOW", "SLEEP 0"):
            ticket = self.say("PULSE WAIT ~shared").split()[3]
            self.say(f"PULSE RESULT {ticket} {result}")
        session = self._session()
        self._last = 0
        for line in ("PULSE CREATE ~shared", "PULSE DELETE ~nowhere", "PULSE RESULT 999999 FAIL"):
            self._number(session, line)
        self._number(session, "PULSE WAIT ~shared", repeatable=False)       # its ticket will be given up
        self.say("PULSE WAIT ~together")
        self.say("PULSE SET ~together 4 DENY", "stop")
        self.say("QUEUE CONFIG ~rated RATE 4 PER 86400")
        self.say("QUEUE CREATE ~sharing PULSE ~shared")
        self._number(session, "PULSE DELETE ~shared")       # it is in use
        for _ in range(2):
            self.put("rated 0")
            self.put("sharing 0")
        self.say(f"LATER {self.take('rated EXPIRE 60')} SLOW")
        self.take(f"rated {LONG}")
        self.take(f"sharing {LONG}")

    def _fair_shares(self) -> None:
        self.say("SCHED CONFIG LEVELS 0|60|600 CAP 120 MULTIPLIER 3 GROUPKEEP 86400")
        self.say("QUEUE CREATE ~fair SCHED FAIR")
        for group in ("red", "blue", "red", "green", "blue", "red"):
            self.put(f"fair 0 GROUP ~{group}")
        self.put("fair 0")              # of a group that is called as its queue
        self.put("fair 0 GROUP ~late DELAY 3000000000 KEY late TRIES 9")
        self.put("mixed 0 GROUP ~red")
        self.say(f"DONE {self.take('fair')} RAN 2.5")
        self.say(f"LATER {self.take(f'fair {LONG}')} RAN 3600 REASON slow")
        self.say(f"TOUCH {self.take(f'fair {LONG}')} RAN 0.5")
        self.say(f"GET ~mixed|~fair {LONG} BY FAIR")
        self.put("gone 0 GROUP ~idle")
        self.say(f"DONE {self.take('gone')}")       # the group has no jobs, and is still known
        session = self._session()
        one, other = (self.take(f"fair {LONG}") for _ in range(2))
        for line in (f"TOUCH {one} RAN 1", f"LATER {one} RAN 1", f"DONE {other} RAN 1"):
            self._number(session, line)
        session.close()

    def _groups_by(self) -> None:
        header = "tenant: acme\n"
        self.say("QUEUE CREATE ~tenants SCHED GROUPS GROUPBY HEAD tenant")
        self.put(f"tenants 0 HEAD {len(header)}", header + "of a tenant")
        self.put("tenants 0")
        self.say("QUEUE CREATE ~own SCHED FAIR GROUPBY ITEM GROUPORDER ON")
        for _ in range(3):
            self.put("own 0 IS ~order")
        self.say(f"GET ~own {LONG} COUNT 2")
        self.say("QUEUE CREATE ~users SCHED GROUPS GROUPBY USER")
        self.put("users 0")

    def _numbers(self) -> None:
        for line in (
            "numbered 0 LEASE 3000000000", "numbered 0", "numbered 7 DELAY 3000000000", "numbered 0 KEY n GROUP ~red",
        ):
            self.put(f"{line} NUMBER")
        self.put("numbered 0 LEASE 60")
        self.say(f"LATER {self.take('numbered')}")
        self.take(f"numbered {LONG}")
        gone = self.put("numbered 0 NUMBER").split()[3]
        session = self._session()
        self.say(f"SESSION KEEP {self._sid}")
        self._last = 0
        self._number(session, "PUT ~numbered 0 1 NUMBER", "x")
        self._number(session, f"CHANGE NUMBER {gone} PRI 3")
        self._number(session, f"DELETE NUMBER {gone}")
        self._number(session, f"DELETE NUMBER {gone} UNTAKEN")
        self._number(session, "KICK numbered 1 HERE")
        session.close()
        for line in ("buried 0 IS ~order KEY b LEASE 60", "buried 3 DELAY 3000000000", "buried 4"):
            self._bury(self.put(f"{line} NUMBER").split()[-1], "PRI 7 REASON broken")
        kicked = self.put("buried 0 NUMBER DELAY 3000000000").split()[-1]
        self.say(f"KICK JOB NUMBER {kicked}")
        self._bury(kicked, "")
        self.say("KICK buried 1 HERE")
        self.put("buried 9")
        self.say(f"BURY {self.take('buried')} HERE")
        self.say("QUEUE PAUSE numbered OUT FOR 3000000000")
        self.say("QUEUE PAUSE ~left OUT FOR 3000000000")

    def _bury(self, number: str, options: str) -> None:
        """Bury a numbered job where it lies."""
        taken = self.say(f"GET NUMBER {number} {LONG}").split()[3]
        self.say(f"BURY {taken} HERE {options}".rstrip())

    def _topics(self) -> None:
        for line in (
            "~news ~all", "~news ~sports PATTERN sports.#", "~news ~chess PATTERN *.chess", "~news ~left",
            "~old ~all", "~old ~unheard",
        ):
            self.say(f"TOPIC BIND {line}")
        self.say("TOPIC UNBIND ~news ~left")
        self.say("TOPIC DELETE ~old")
        self.say("PUT @~news 3 4 IS ~order ROUTE sports.chess", "mate")
        self.say("PUT @~news 3 4 GROUP ~red KEY k", "text")
        self.put("copied|~copied_as_well 0 TTL 3000000000", "the same bytes in both")
        self.take(f"copied {LONG}")
        self.say("PUTS 2", "@~news 0 1\r\na~copied|~all 0 1 DELAY 3000000000\r\nb")
        session = self._session()
        for line, data in (
            ("PUT ~copied|~all 0 1", "x"), ("PUT ~copied|~in 0 1", "x"), ("PUT @~news 0 1 ROUTE politics", "x"),
            ("PUT @~nobody 0 1", "x"), ("TOPIC BIND ~news ~all", ""), ("TOPIC UNBIND ~news ~nowhere", ""),
            ("TOPIC UNBIND ~old ~all", ""), ("TOPIC DELETE ~old", ""),
        ):
            self._number(session, line, data)
        session.close()

    def _workers(self) -> None:
        session = self._session()
        self.say("WORKER ~idle_pool 4 0", connection=session)
        self._number(session, "WORKER ~pool 8 2")
        for line in ("~pool MAX 6 MIN 1", "~pool STATE PAUSE", "~pool MIN 7", "~nobody MAX 1"):
            self._number(session, f"WORKER SET {line}", refused=line == "~pool MIN 7")
        self._number(session, "WORKER ~pool 8 3")
        session.close()
        ending = self._session()
        self.say("WORKER ~ended 1 1", connection=ending)
        self.say("SESSION CLOSE", connection=ending)        # it ends with its session
        ending.close()

    def _session(self, ttl: str = "") -> Connection:
        connection = Connection(self._server)
        self._sid = self.say(f"SESSION {ttl}".rstrip(), connection=connection).split()[3]
        self._last = 0
        return connection

    def _number(
        self, session: Connection, line: str, data: str = "", *, repeatable: bool = True, refused: bool = False,
    ) -> None:
        """Send a command with a number. `refused`: as one with bad arguments, though only the state knows that."""
        self._last += 1
        line, data = f"REQ {self._last} {line}".replace("~", self.part), data.replace("~", self.part)
        answer = session.ask(line, data)
        if line.endswith("WITHIN 0.01"):
            assert session.answer("PUT") == "408 Wait Timeout"
        assert (answer[:3] == "400") == refused, (line, answer)
        if repeatable:
            self.asked.append({"session": self._sid, "line": line, "data": data, "answer": answer})

    def _id_of(self, line: str) -> str:
        line = line.replace("~", self.part)
        answers = [asked["answer"] for asked in self.asked if asked["line"].split(" ", 2)[2].startswith(line)]
        return answers[-1].split()[3]

    def _things_that_end(self) -> None:
        self.put("ends 0", "its lease has ended")
        self.take("ends EXPIRE 0.05 THEN LATER")
        with Connection(self._server) as vanishing:
            vanishing.send(f"GETB {self.part}vanishing {LONG}")
            time.sleep(0.2)
            self._cluster.pause("n1")       # it learns at once that there is a job without a taker
            self.connection.send(f"PUT {self.part}vanishing 0 5", "again")
            vanishing.wire.vanish()
        self._cluster.resume("n1")
        assert self.connection.answer("PUT") == "200 OK"
        time.sleep(2.5)                     # for the lease, a TTL and a session

    def stand_still(self) -> Iterator[None]:
        """Switch the service offline while jobs become READY and a CLONE is in progress, then online again."""
        self.put("before 0 IS ~released")
        many = 1020                 # a thousand are released by one entry, and so the others are left over
        self.say(f"PUTS {many}", "~after 0 0 AFTER ~released\r\n" * many)
        number = self.take("before")
        self.put("scratch -1", "z" * 60_000)        # so that the state is too large for a single chunk
        with Connection(self._server) as cloning:
            state = self.say("SNAPSHOT").partition("\n")[2]
            cloning.send(f"CLONE {len(state)}", state[:-1])
            time.sleep(0.5)
            self.connection.send(f"DONE {number}\r\nCLUSTER OFFLINE")
            assert self.connection.answer("DONE") == "200 OK FINQ FINI"
            assert self.connection.answer("CLUSTER OFFLINE").startswith("200 OK")
            yield
        self.say("CLUSTER ONLINE")


def record(name: str) -> None:
    """Record a directory; see the head of this file."""
    with LocalCluster(1, config={"raft": {"failover_grace_ms": 0}}) as cluster, ExitStack() as stack:
        server, data_dir = cluster.server("n1"), cluster.data_dir("n1")
        stories: list[Story] = []
        for part in "a.", "b.":
            story = Story(cluster, part)
            stories.append(story)
            _change_the_members(cluster)
            _clone(story)
            story.tell()
            still = story.stand_still()
            next(still)
            if story is stories[0]:
                story.say("CLUSTER SNAPSHOT")
                next(still, None)
                cluster.kill("n1")
                cluster.restart("n1")
                cluster.wait_for_leader()
            else:
                stack.callback(still.close)
        time.sleep(SETTLED_S)
        answer = say(server, "CLUSTER HASH", 2.0)
        assert answer is not None
        cluster.kill("n1")
        SCENARIO.mkdir(exist_ok=True)
        pack(data_dir, SCENARIO / f"{name}.tar.xz")
    with tempfile.TemporaryDirectory() as folder:
        unpack(SCENARIO / f"{name}.tar.xz", Path(folder) / "n1")
        found = read(Path(folder) / "n1")
    assert [str(found.index), found.chain] == answer.split()[2:], answer
    first = {kind.__name__ for kind in get_args(Operation) if LEVELS.get(kind, FIRST_LEVEL) == FIRST_LEVEL}
    missing = first - found.operations - NOT_RECORDED
    assert not missing, f"not in the journal behind the snapshot: {missing}"
    description = {
        "made by sockpqd": version("sockpqd"), "hash": found.chain, "snapshot": found.snapshot, "state": found.state,
        "asked": [asked for story in stories for asked in story.asked],
        "kept keys": [key for story in stories for key in story.keys],
    }
    text = re.sub(r"\[\s+([^][{}]*?)\s+\]", _on_one_line, json.dumps(description, indent=1))
    (SCENARIO / f"{name}.json").write_text(f"{text}\n", "utf-8")


def _on_one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r"\n\s+", " ", found[1]) + "]"


def _change_the_members(cluster: LocalCluster) -> None:
    """Let a node become a voter and be removed, while another one stays a learner that never came."""
    coming, absent = cluster.spare(), cluster.spare()
    before = [name for name in cluster.names if name not in (coming, absent, "n1")]

    def order(command: str) -> None:
        answer = cluster.say("n1", command, 20.0)
        assert answer is not None
        assert answer.startswith("200 OK"), (command, answer)

    def add(name: str) -> None:
        order(f"CLUSTER ADD {name} {cluster.peer(name)} {cluster.server(name)}".replace(":", " "))

    if before:
        order(f"CLUSTER REMOVE {before[-1]}")           # the learner
    add(coming)
    cluster.restart(coming)
    cluster.wait_until(
        lambda views: any(
            sorted((node.role, node.lag) for node in view.nodes) == [("FOLLOWER", 0), ("LEADER", 0)] for view in views
        ),
        "two voters",
    )
    order(f"CLUSTER REMOVE {coming}")
    cluster.kill(coming)
    add(absent)


def _clone(story: Story) -> None:
    """Export the whole state and bring it in again."""
    state = story.say("SNAPSHOT").partition("\n")[2]
    assert story.connection.ask(f"CLONE {len(state)}", state) == "200 OK"


class Found(NamedTuple):
    """The findings of this environment's program in a data directory."""

    index: int
    chain: str                  # the hash of everything that was executed
    snapshot: str               # of the state: the hash of its bytes
    state: dict[str, Any]
    operations: set[str]        # the kinds of them in the journal behind the snapshot
    entries: list[bytes]        # those, as the program of this environment would write them
    spent: list[int]            # what each of them was charged beyond its cost (State.spent)


class _Deaf(ClusterListener):
    """A listener that does nothing."""


def read(data_dir: Path) -> Found:
    """Recover a node from its directory, as at a start, and stop it before it does anything."""
    applied: list[tuple[int, int, Sequence[Operation]]] = []
    spent: list[int] = []

    async def recovered() -> tuple[int, str, Machine]:
        members = (Member("n1", "127.0.0.1:1", "127.0.0.1:2"),)
        node = ClusterNode(NodeSettings("n1", data_dir, "127.0.0.1:0", members, "test"), _Deaf())
        apply = node.machine.apply

        def noted(index: int, now_ms: int, seed: int, operations: Sequence[Operation]) -> Applied:
            applied.append((now_ms, seed, operations))
            executed = apply(index, now_ms, seed, operations)
            spent.append(node.machine._own.spent)
            return executed

        node.machine.apply = noted          # type: ignore[method-assign]   # what recovery applies is to be seen
        with applied_at_once():
            await node.start()
        index, value = node.state_hash()
        await node.stop()
        return index, value.hex(), node.machine

    index, chain, machine = asyncio.run(recovered())
    return Found(
        index, chain, hashed(b"".join(machine.snapshot())), described(machine), _kinds(applied),
        [encode_entry(now_ms, seed, list(operations)) for now_ms, seed, operations in applied], spent,
    )


def _kinds(applied: list[tuple[int, int, Sequence[Operation]]]) -> set[str]:
    """Return the kinds of operations, also of numbered commands; those of transactions are all among the others."""
    operations = [operation for _, _, together in applied for operation in together]
    inner = [operation.operation for operation in operations if isinstance(operation, Request)]
    return {type(operation).__name__ for operation in (*operations, *inner)}


def streams(data_dir: Path) -> list[bytes]:
    """Return what the machine wrote into the snapshots of a data directory."""
    found = []
    for path in sorted((data_dir / "snapshots").glob("snapshot-*")):
        file = SnapshotFile(Disk(), path)
        found.append(b"".join(file.stream()))
        file.close()
    return found


def hashed(data: bytes) -> str:
    """Return a digest of 16 bytes, in hexadecimal."""
    return blake2b(data, digest_size=16).hexdigest()


def described(machine: Machine) -> dict[str, Any]:
    """Describe the whole state, as far as it can be asked for, in words that no renaming in the program changes."""
    membership, settings = machine.membership, machine.settings
    return {
        "log": [machine.index, machine.term, machine.leader],
        "clock": machine.clock_ms,
        "cluster id": (machine.cluster_id or b"").hex(),
        "online": machine.online,
        "members": [[one.name, one.peer, one.client] for one in membership.addresses.values()],
        "learner": membership.learner,
        "configuration": membership.configuration,
        "server ids": [machine.server_ids, machine.max_id],
        "next id and place": [machine.next_id, machine.next_seq],
        "next due": machine.next_due_ms(),
        "total": list(astuple(machine.total(None))),
        "config": [
            int(settings.expire_default), settings.autocreate, int(settings.policy), settings.grace_ms,
            settings.session_ttl_ms, settings.fast_empty,
        ],
        "queues": {name: _queue(machine, name) for name in sorted(machine.queue_names(""))},
        "queues with something to take": list(machine.nonempty()),
        "running": [
            [
                job.id, job.queue, job.priority, job.item, _text(job.data), job.attempts, job.at_ms, job.deadline_ms,
                int(job.then), job.lease_ms, job.graced, job.session,
            ]
            for job in machine.running()
        ],
        "sessions": [
            [one.number, one.user, one.address, one.ttl_ms, one.deadline_ms, one.used_ms, one.graced, list(one.taken)]
            for one in machine.sessions()
        ],
        "users": {name: [user.rights, user.key.hex()] for name, user in sorted(machine.users.items())},
        **_since_format6(machine),
    }


def _since_format6(machine: Machine) -> dict[str, Any]:
    """Return what no earlier format has. Without what is not in use, so that descriptions of older ones stay."""
    views = [
        view for name in sorted(machine.queue_names("")) for state in JobState
        for view in machine.peek_queue(name, state, JOBS_MAX)
    ]
    levels, groups = machine.fair_settings, sorted({view.group for view in views if view.group is not None})
    found = {
        "fair": [
            list(levels.thresholds_s), levels.cap_ms, levels.multiplier, levels.keep_ms,
            [list(astuple(level)) for level in machine.fair_levels()],
        ] if machine.fair_used else None,
        "groups": {
            group: list(astuple(one)) for group in groups
            if (one := machine.fair_group(group, machine.clock_ms)) is not None
        },
        "jobs with a group": [[view.queue, view.seq, view.group] for view in views if view.group is not None],
        "jobs with a reason": [[view.queue, view.seq, view.reason] for view in views if view.reason is not None],
        "topics": [[topic, *one] for topic in machine.topic_names() for one in machine.topics[topic]],
        "workers": [
            [one.name, one.session, one.slots, one.busy, one.beat_ms, one.most, one.least, int(one.state)]
            for one in machine.workers()
        ],
        "pulses": {name: _pulse(machine, pulse) for name, pulse in sorted(machine.pulses.items())},
        "granted by": {
            job.id: pulse for job in machine.running() if (pulse := machine.pulse_of_job(job.id)) is not None
        },
        "jobs with a number": [
            [view.number, view.queue, view.state.name, list(astuple(view.counts)), view.created_ms, view.own_lease_ms]
            for view in views if view.counts is not None
        ],
        "jobs buried": [
            [view.queue, view.seq, view.priority, view.item, view.key, _text(view.data), view.attempts, view.at_ms]
            for view in views if view.state is JobState.BURIED
        ],
        "more lines": {
            name: lines for name in sorted(machine.queue_names(""))
            if (lines := [line for line in machine.stat(name, machine.clock_ms) or () if line[0] in MORE_LINES])
            and any(value for _, value in lines)
        },
        "map of clusters": None if (known := machine.cluster_map) is None else [
            known.version, known.own, _text(known.text),
        ],
        "idle since": {name: machine.used_ms(name) for name in sorted(machine.expiring)},
        "more settings": {
            name: more for name in sorted(machine.queue_names(""))
            if any(more := _more_settings(machine.queue_settings(name)))
        },
    }
    return {word: value for word, value in found.items() if value}


def _pulse(machine: Machine, pulse: Pulse) -> list[Any]:
    return [
        pulse.rate, pulse.per_ms, pulse.step_ms, pulse.max_pause_ms, pulse.max_run_ms, pulse.together,
        pulse.max_wait_ms, _text(pulse.payload), pulse.deny, pulse.now, pulse.pause_ms, pulse.sleep_until_ms,
        pulse.granted, pulse.errors, pulse.period_ends_ms, pulse.slow, pulse.failed, sorted(pulse.tickets.items()),
        sorted(machine.rate_limited_queues.get(pulse.name, ())),
    ]


def _more_settings(settings: QueueSettings | None) -> list[Any]:
    return [] if settings is None else [
        settings.ttl_ms, settings.idle_ms, int(settings.overflow), settings.bound, settings.alarm, settings.alarmed,
        settings.pulse, int(settings.sched), *_pause(settings),
    ]


def _pause(settings: QueueSettings) -> list[Any]:
    return [settings.pause_ms, settings.pause_ends_ms, settings.passing] if settings.pause_ms else []


def _queue(machine: Machine, name: str) -> dict[str, Any]:
    settings, counts = machine.queue_settings(name), machine.counts(name)
    return {
        "settings": None if settings is None else [
            settings.expire_ms, int(settings.then), int(settings.order), settings.tries, settings.dead, settings.weight,
            settings.limit, settings.item_limit, settings.capacity, settings.data_bytes_max, settings.batch,
            settings.portion, settings.keep_ms, settings.paused_in, settings.paused_out,
        ],
        "counts": None if counts is None else list(astuple(counts))[:4],
        "total": list(astuple(machine.total(name))),
        "stat": [
            line for line in machine.stat(name, machine.clock_ms + 5000) or () if line[0] not in (*MORE_LINES, "URGENT")
        ],
        "jobs": {
            word: [
                [job.priority, job.item, job.key, _text(job.data), job.attempts, job.at_ms, job.queue]
                for job in machine.peek_queue(name, state, JOBS_MAX)
            ]
            for word, state in (
                ("ready", JobState.READY), ("delayed", JobState.DELAYED), ("running", JobState.RUNNING),
                ("dead", JobState.DEAD),
            )
        },
    }


def _text(data: bytes) -> str:
    return data.decode("latin-1") if len(data) < 100 else hashed(data)


if __name__ == "__main__":
    record(sys.argv[1])
