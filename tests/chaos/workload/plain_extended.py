"""Extended commands of a client without session: each is tried once."""

from __future__ import annotations

from tests.chaos.workload.bodies import body, job_of, original
from tests.chaos.workload.history import (
    Cascade,
    Command,
    Copies,
    DoneMany,
    GetMany,
    Handed,
    LaterMany,
    Move,
    Outcome,
    PutOff,
    Puts,
    PutWith,
    Record,
    Steer,
    Touch,
    TouchMany,
)
from tests.chaos.workload.plain import PlainClient, Refused, Unexpected, by
from tests.wire import Broken

STORED, EXISTS, MISSING, BUSY = "200 OK", "409 Job Exists", "404 Job Not Found", "503 Busy"


class PlainExtendedClient(PlainClient):
    """Each method writes a record and returns it; None when no server was found."""

    def put_with(self, put: PutWith) -> Record | None:
        """PUT with DELAY, KEY and GROUP."""
        def execute(start: int) -> Record:
            line = self._say(f"PUT {_arguments(put)}", body(put.body))
            stored = line.startswith(f"{STORED} NUMBER ") if put.number else line == STORED
            if not stored and (line != EXISTS or put.key is None):
                raise Unexpected(f"{line!r} to a PUT")
            return self._record(put, start, Outcome.OK, good=(stored,))
        return self._run(put, execute)

    def puts(self, puts: Puts) -> Record | None:
        """Send PUTS, and record its outcome."""
        def execute(start: int) -> Record:
            blocks = b"".join(f"{_arguments(put)}\r\n".encode() + body(put.body) for put in puts.puts)
            lines = self._list(f"PUTS {len(puts.puts)}", blocks)
            if lines != [STORED] * len(puts.puts):
                raise Unexpected(f"{lines} to a PUTS")
            return self._record(puts, start, Outcome.OK, good=(True,) * len(lines))
        return self._run(puts, execute)

    def copies(self, copies: Copies) -> Record | None:
        """Send a PUT into several queues, or to a topic, and record its outcome."""
        first, count = copies.puts[0], len(copies.puts)
        where = "|".join(put.queue for put in copies.puts) if copies.topic is None else f"@{copies.topic}"

        def execute(start: int) -> Record:
            data = body(original(first.body))
            line = self._say(f"PUT {where} {first.priority} {len(data)}", data)
            if line != f"200 OK {count}":
                raise Unexpected(f"{line!r} to a PUT into {count} queues")
            return self._record(copies, start, Outcome.OK, good=(True,))
        return self._run(copies, execute)

    def get_many(self, get: GetMany) -> Record | None:
        """GET or GETB with COUNT and META, perhaps BY a policy."""
        def execute(start: int) -> Record:
            verb = "GETB" if get.blocks else "GET"
            expire = f"EXPIRE {get.expire_ms / 1000:g} THEN LATER"
            if get.number is not None:
                return self._get_number(get, start, expire)
            self._send(f"{verb} {'|'.join(get.queues)} {expire} COUNT {get.count} META{by(get.policy)}")
            line = self._wait() if get.blocks else self._line()
            if line == "404 Queue Empty" and not get.blocks:
                return self._record(get, start, Outcome.OK)
            return self._record(get, start, Outcome.OK, given=self._jobs(self._rest(line), get.count))
        return self._run(get, execute)

    def done_many(self, ids: tuple[int, ...]) -> Record | None:
        """Send DONE of several ids, and record its outcome."""
        return self._on_several(DoneMany(ids), ids, "DONE")

    def later_many(self, ids: tuple[int, ...]) -> Record | None:
        """LATER .. FIRST of several ids."""
        return self._on_several(LaterMany(ids), ids, "LATER", " FIRST")

    def touch_many(self, touch: TouchMany) -> Record | None:
        """TOUCH .. EXPIRE of several ids."""
        return self._on_several(touch, touch.ids, "TOUCH", f" EXPIRE {touch.expire_ms / 1000:g}")

    def steer(self, steer: Steer) -> Record | None:
        """Send WORKER SET .. MAX, and record its outcome."""
        def execute(start: int) -> Record:
            line = self._say(f"WORKER SET {steer.pool} MAX {steer.most}")
            if line not in (STORED, "404 Worker Not Found"):
                raise Unexpected(f"{line!r} to a WORKER SET")
            return self._record(steer, start, Outcome.OK, missing=line != STORED)
        return self._run(steer, execute)

    def put_off(self, later: PutOff) -> Record | None:
        """LATER .. DELAY, perhaps RAN; or BURY .. HERE and KICK."""
        if later.kicked is not None:
            return self._bury_and_kick(later)
        ran = "" if later.ran_ms is None else f" RAN {later.ran_ms / 1000:g}"
        return self._on_running(later, f"LATER {later.id} DELAY {later.delay_ms / 1000:g}{ran}")

    def touch(self, touch: Touch) -> Record | None:
        """Send TOUCH .. EXPIRE, and record its outcome."""
        return self._on_running(touch, f"TOUCH {touch.id} EXPIRE {touch.expire_ms / 1000:g}")

    def move(self, move: Move) -> Record | None:
        """Send MOVE, and record its outcome."""
        return self._on_running(move, f"MOVE {move.id} {move.queue}{_delay(move.delay_ms)}")

    def cascade(self, cascade: Cascade) -> Record | None:
        """Send BEGIN, the commands and COMMIT, and record the outcome."""
        def execute(start: int) -> Record:
            try:
                self._collect(cascade)
            except Broken as broken:            # what was not committed is forgotten with the connection
                raise Broken(str(broken), sent=False) from broken
            line = self._say("COMMIT")
            if line.startswith("409 Aborted "):
                return self._aborted(cascade, start, line)
            lines = self._rest(line)
            if len(lines) != 1 + len(cascade.puts) or not all(line.startswith(STORED) for line in lines):
                raise Unexpected(f"{lines} to a COMMIT")
            return self._record(cascade, start, Outcome.OK, good=(True,))
        return self._run(cascade, execute)

    # inside

    def _collect(self, cascade: Cascade) -> None:
        puts = [(f"PUT {_arguments(put)}", body(put.body)) for put in cascade.puts]
        done = [(f"DONE {cascade.done}", b"")]
        parts = [*puts, *done] if cascade.puts_first else [*done, *puts]
        for expected, line, data in [("200 OK", "BEGIN", b""), *(("202 Queued", *part) for part in parts)]:
            answer = self._say(line, data)
            if answer != expected:
                raise Unexpected(f"{answer!r} to {line!r}")

    def _aborted(self, cascade: Cascade, start: int, line: str) -> Record:
        """Record a transaction of which nothing was executed: its job does not run, or the leader is short of room."""
        reason = line.removeprefix("409 Aborted ").partition(" ")[2]
        if reason not in (MISSING, BUSY):
            raise Unexpected(f"{line!r} to a COMMIT")
        if reason == BUSY:
            return self._record(cascade, start, Outcome.NOT_EXECUTED)
        return self._record(cascade, start, Outcome.OK, good=(False,))

    def _get_number(self, get: GetMany, start: int, expire: str) -> Record:
        line = self._say(f"GET NUMBER {get.number} {expire} META")
        if line in (MISSING, "409 Job Running"):
            return self._record(get, start, Outcome.OK, missing=line == MISSING)
        if not line.startswith("200 OK "):
            raise Unexpected(f"{line!r} to a GET NUMBER")
        return self._record(get, start, Outcome.OK, given=self._jobs([line.removeprefix("200 OK ")], 1))

    def _on_several(self, command: Command, ids: tuple[int, ...], verb: str, options: str = "") -> Record | None:
        def execute(start: int) -> Record:
            lines = self._list(f"{verb} {' '.join(map(str, ids))}{options}")
            if len(lines) != len(ids) or any(not line.startswith(STORED) and line != MISSING for line in lines):
                raise Unexpected(f"{lines} to a {verb}")
            return self._record(command, start, Outcome.OK, good=tuple(line != MISSING for line in lines))
        return self._run(command, execute)

    def _on_running(self, command: PutOff | Touch | Move, words: str) -> Record | None:
        def execute(start: int) -> Record:
            line = self._say(words)
            if not line.startswith("200 OK") and line != MISSING:
                raise Unexpected(f"{line!r} to {words!r}")
            return self._record(command, start, Outcome.OK, good=(line != MISSING,))
        return self._run(command, execute)

    def _bury_and_kick(self, later: PutOff) -> Record | None:
        def execute(start: int) -> Record:
            line = self._say(f"BURY {later.id} HERE")
            if line not in (STORED, f"{STORED} FINQ", MISSING):
                raise Unexpected(f"{line!r} to a BURY")
            if line != MISSING:
                try:
                    kicked = self._say(f"KICK JOB NUMBER {later.kicked}")
                except (Broken, Refused) as error:      # if it lies there, then until the end
                    raise Broken(str(error), sent=True) from error
                if kicked not in ("200 OK 1", MISSING):         # somebody has taken it by its number
                    raise Unexpected(f"{kicked!r} to a KICK")
            return self._record(later, start, Outcome.OK, good=(line != MISSING,))
        return self._run(later, execute)

    def _list(self, words: str, data: bytes = b"") -> list[str]:
        return self._rest(self._say(words, data))

    def _rest(self, line: str) -> list[str]:
        """Read the lines that the first one counts."""
        words = line.split(" ")
        if words[:2] != ["200", "OK"] or len(words) != 3:
            raise Unexpected(f"{line!r} in the place of a list")
        return [self._line() for _ in range(int(words[2]))]

    def _jobs(self, lines: list[str], count: int) -> tuple[Handed, ...]:
        if not 1 <= len(lines) <= count:
            raise Unexpected(f"{len(lines)} jobs to a GET COUNT {count}")
        assert self._wire
        jobs = []
        for line in lines:
            queue, number, priority, length, *meta = line.split(" ")
            told = dict(zip(meta[::2], meta[1::2], strict=True))
            data = self._wire.exactly(int(length))
            named = None if "NUMBER" not in told else int(told["NUMBER"])
            meta_of_job = int(told["TRY"]), told.get("GROUP"), named
            jobs.append(Handed(int(number), queue, int(priority), job_of(data, queue), None, *meta_of_job))
        return tuple(jobs)


def _arguments(put: PutWith) -> str:
    key = "" if put.key is None else f" KEY {put.key}"
    group = "" if put.group is None else f" GROUP {put.group}"
    return f"{put.queue} {put.priority} {len(body(put.body))}{_delay(put.delay_ms)}{key}{group}{' NUMBER' * put.number}"


def _delay(delay_ms: int) -> str:
    return f" DELAY {delay_ms / 1000:g}" if delay_ms else ""
