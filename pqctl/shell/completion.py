"""Completion of the next word: the verbs of the protocol with their options, and the names of queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

NAMES_S = 5.0           # for how long names of queues are not asked for again

LEASE = ("EXPIRE", "THEN", "LATER", "DONE", "DEAD")
GETS = ("IS", "COUNT", "META", "BOUND", *LEASE, "BY")
TIMES = ("DELAY", "AT")
SETTINGS = (
    "LIMIT", "CAPACITY", "TRIES", "DEADQUEUE", "MAXDATA", "ORDER", "ITEMLIMIT", "SCHED", "GROUPLIMIT", "GROUPRATE",
    "GROUPBY", "GROUPORDER",
)

# Each verb, or its first words, with the words that may follow; those in QUEUES are also followed by names of queues.
VERBS: dict[str, tuple[str, ...]] = {
    "PUT": ("IS", "NEW", "WAIT", *TIMES, "EVERY", "AFTER", "WHEN", "TTL", "KEY", "TRIES", "ONDUP", "IGNORE", "REPLACE",
            "GROUP"),
    "PUTS": (), "GET": GETS, "GETB": (*GETS, "WITHIN"), "GETBE": (*GETS, "WITHIN"),
    "DONE": (), "LATER": (*TIMES, "PRI"), "TOUCH": LEASE, "CHANGE": ("KEY", "PRI", *TIMES, "IS", "NOITEM", "DATA"),
    "DELETE": ("KEY",), "PEEK": ("KEY", "READY", "DELAYED", "RUNNING", "DEAD", "BURIED", "COUNT"),
    "MOVE": ("PRI", *TIMES, "DATA"), "BURY": ("REASON",), "KICK": (), "POLICY": ("RANDOM", "PRIORITY"),
    "BEGIN": (), "COMMIT": (), "ROLLBACK": (), "SESSION": ("TTL", "CLOSE", "LIST", "END"), "REQ": (), "TAKEN": (),
    "TOTAL": (), "RUNLIST": (), "SNAPSHOT": (), "CLONE": (), "PING": (), "CAPS": (), "HELP": (), "CONFIG": (),
    "AUTH": (),
    "QUEUE LIST": (), "QUEUE STAT": (), "QUEUE CREATE": SETTINGS, "QUEUE CONFIG": SETTINGS,
    "QUEUE PAUSE": ("IN", "OUT", "ALL"), "QUEUE RESUME": (), "QUEUE MOVE": ("COUNT", "DIED", "SEQ"),
    "QUEUE PURGE": ("READY", "DELAYED", "RUNNING", "DEAD", "BURIED", "ENDED", "OWN", "ALL"),
    "QUEUE DELETE": ("FORCE", "LEAVE"), "ITEM STAT": (), "ITEM LIST": ("HELD",), "ITEM RETRY": (), "ITEM RELEASE": (),
    "ITEM CANCEL": ("REASON",),
    "ITEM HOLD": ("NEW", "EXPIRE", "THEN", "CANCEL", "RELEASE"),
    "GROUP CONFIG": ("LIMIT", "RATE", "PER", "WEIGHT"), "GROUP PAUSE": ("FOR",), "GROUP RESUME": (), "GROUP DELETE": (),
    "GROUP LIST": (), "USER SET": (), "USER DELETE": (), "USER LIST": (), "INTERCONNECT": (),
    "CLUSTER LEADER": (), "CLUSTER STATUS": (), "CLUSTER HASH": (), "CLUSTER ID": (), "CLUSTER ADD": (),
    "CLUSTER REMOVE": (), "CLUSTER TRANSFER": (), "CLUSTER OFFLINE": (), "CLUSTER ONLINE": (), "CLUSTER SNAPSHOT": (),
    "CLUSTER PROMOTE": ("GRACE",), "CLUSTER FENCED": (), "CLUSTER REPLICA": (),
    "OFFLINE": (), "ONLINE": (), "SHUTDOWN": (), "QUIT": (),
}
QUEUES = ("PUT", "GET", "GETB", "GETBE", "PEEK", "MOVE", "KICK", "TOTAL", "WAIT", "KEY", "QUEUE")


class Words:
    """Completes lines. `queues` asks a server for the names of its queues; it may raise anything."""

    def __init__(self, queues: Callable[[], Iterable[str]]) -> None:
        self._ask = queues
        self._names: tuple[str, ...] = ()
        self._asked_at = -NAMES_S

    def after(self, before: str) -> list[str]:
        """Return the words that may follow this text, all beginning with its unfinished last word."""
        *words, unfinished = before.split(" ")
        words = [word for word in words if word]
        if words[:1] == ["REQ"]:
            words = words[2:] if len(words) > 1 else words
        found = [word for word in self._following(words) if word.startswith(unfinished.upper())]
        if any(word in QUEUES for word in words):
            found += [name for name in self._queue_names() if name.startswith(unfinished)]
        return found

    def _following(self, words: list[str]) -> list[str]:
        if not words:
            return list(dict.fromkeys(verb.split()[0] for verb in VERBS))
        options = VERBS.get(words[0]) or VERBS.get(" ".join(words[:2]), ())
        if words[0] not in VERBS and len(words) == 1:
            options = tuple(verb.split()[1] for verb in VERBS if verb.split()[0] == words[0] and " " in verb)
        return [option for option in options if option not in words]

    def _queue_names(self) -> tuple[str, ...]:
        now = time.monotonic()
        if now - self._asked_at > NAMES_S:
            self._asked_at = now
            try:
                self._names = tuple(self._ask())
            except Exception:           # no server, no right: then nothing is offered
                self._names = ()
        return self._names
