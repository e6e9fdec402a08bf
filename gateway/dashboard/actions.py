"""The actions of the pages: each is a command of the protocol, made of the fields of its form.

A field never becomes more than one word of the line, except for `settings` and `options`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

WORD = re.compile(r"[^\s\x00-\x1f\x7f]{1,255}")
SECRET = re.compile(r"[!-~]{16,64}")     # as the client library wants them
PURGED = "READY", "DELAYED", "RUNNING", "DEAD", "BURIED", "OWN", "ALL"
NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,6})?")

Fields = Mapping[str, str]


class BadForm(Exception):
    """A field is missing or invalid; the message says which."""


class Action(Struct, frozen=True):
    """One action.

    `harm`: what it destroys, for the confirmation; `here`: it is executed on the node that shows the page.
    """

    line: Callable[[Fields], str]
    harm: str = ""
    here: bool = False
    data: bool = False          # the field `body` goes with it, and its length ends the line
    hidden: Callable[[Fields], str] | None = None       # what else ends the line, and is not shown or logged


def word(fields: Fields, name: str) -> str:
    """Return a field that is one word. Raises BadForm."""
    value = fields.get(name, "")
    if WORD.fullmatch(value) is None:
        raise BadForm(f"{name} has to be one word")
    return value


def number(fields: Fields, name: str) -> str:
    """Return a field that is a number. Raises BadForm."""
    value = fields.get(name, "").strip()
    if NUMBER.fullmatch(value) is None:
        raise BadForm(f"{name} has to be a number")
    return value


def words(fields: Fields, name: str) -> str:
    """Return a field of words with one space before each; it may be empty. Raises BadForm."""
    found = fields.get(name, "").split()
    if not all(WORD.fullmatch(one) for one in found):
        raise BadForm(f"{name} has a word that cannot be one")
    return "".join(f" {one}" for one in found)


def one_of(fields: Fields, name: str, *choices: str) -> str:
    """Return a field that is one of these words. Raises BadForm."""
    value = fields.get(name, "")
    if value not in choices:
        raise BadForm(f"{name} has to be one of {', '.join(choices)}")
    return value


def selector(fields: Fields) -> str:
    """Return a job's name in the protocol: its id, its place, its number, or its key. Raises BadForm."""
    if fields.get("id"):
        return number(fields, "id")
    if fields.get("seq"):
        return f"SEQ {word(fields, 'queue')} {number(fields, 'seq')}"
    if fields.get("number"):
        return f"NUMBER {number(fields, 'number')}"
    return f"KEY {word(fields, 'queue')} {word(fields, 'key')}"


def _put(fields: Fields) -> str:
    line = f"PUT {word(fields, 'queue')} {number(fields, 'priority')} {len(fields.get('body', '').encode())}"
    return line + words(fields, "options")


def _change(fields: Fields) -> str:
    line = f"CHANGE {selector(fields)}"
    if fields.get("priority", "").strip():
        line += f" PRI {number(fields, 'priority')}"
    if fields.get("delay", "").strip():
        line += f" DELAY {number(fields, 'delay')}"
    if fields.get("body"):
        line += f" DATA {len(fields['body'].encode())}"
    return line


def _retry(fields: Fields) -> str:
    if fields.get("number"):
        return f"KICK JOB NUMBER {number(fields, 'number')}{' ENDED' if fields.get('ended') else ''}"
    return f"KICK JOB SEQ {word(fields, 'queue')} {number(fields, 'seq')}"


def _pause(fields: Fields) -> str:
    return f"QUEUE PAUSE {word(fields, 'queue')} {one_of(fields, 'direction', 'IN', 'OUT', 'ALL')}"


def _purge(fields: Fields) -> str:
    return f"QUEUE PURGE {word(fields, 'queue')} {one_of(fields, 'state', *PURGED)}"


def _move(fields: Fields) -> str:
    line = f"QUEUE MOVE {word(fields, 'queue')} {word(fields, 'to')}"
    if fields.get("count", "").strip():
        line += f" COUNT {number(fields, 'count')}"
    return f"{line} DIED {word(fields, 'died')}" if fields.get("died", "").strip() else line


def _delete(fields: Fields) -> str:
    return f"QUEUE DELETE {word(fields, 'queue')} FORCE{' LEAVE' if fields.get('dead') == 'LEAVE' else ''}"


def _pause_group(fields: Fields) -> str:
    line = f"GROUP PAUSE {word(fields, 'group')}"
    return f"{line} FOR {number(fields, 'seconds')}" if fields.get("seconds", "").strip() else line


def _transfer(fields: Fields) -> str:
    return f"CLUSTER TRANSFER {word(fields, 'node')}" if fields.get("node") else "CLUSTER TRANSFER"


def _binding(verb: str) -> Callable[[Fields], str]:
    def line(fields: Fields) -> str:
        pattern = f" PATTERN {word(fields, 'pattern')}" if fields.get("pattern") else ""
        return f"TOPIC {verb} {word(fields, 'topic')} {word(fields, 'queue')}{pattern}"
    return line


def _bounds(fields: Fields) -> str:
    line = f"WORKER SET {word(fields, 'worker')}"
    for name, option in (("least", "MIN"), ("most", "MAX")):
        if fields.get(name, "").strip():
            line += f" {option} {number(fields, name)}"
    return line


def _user(fields: Fields) -> str:
    return f"USER SET {word(fields, 'user')} {words(fields, 'rights').strip().replace(' ', ',') or '-'}"


def _key(fields: Fields) -> str:
    secret = fields.get("secret", "")
    if SECRET.fullmatch(secret) is None:
        raise BadForm("secret has to have 16 to 64 visible ASCII characters")
    return secret.encode().hex()


def _of(verb: str, field: str, kind: Callable[[Fields, str], str] = word, more: str = "") -> Callable[[Fields], str]:
    return lambda fields: f"{verb} {kind(fields, field)}{more}"


ACTIONS: dict[str, Action] = {
    "queue.create": Action(lambda fields: f"QUEUE CREATE {word(fields, 'queue')}{words(fields, 'settings')}"),
    "queue.config": Action(lambda fields: f"QUEUE CONFIG {word(fields, 'queue')}{words(fields, 'settings')}"),
    "queue.pause": Action(_pause),
    "queue.resume": Action(_of("QUEUE RESUME", "queue")),
    "queue.purge": Action(_purge, harm="its jobs in this state are removed for good"),
    "queue.move": Action(_move, harm="the jobs wait in the other queue, and what failed in them is forgotten"),
    "queue.delete": Action(_delete,
                           harm="the queue, its settings and all its jobs, running ones too, are removed for good"),
    "job.put": Action(_put, data=True),
    "job.change": Action(_change, data=True),
    "job.delete": Action(lambda fields: f"DELETE {selector(fields)}", harm="the job is removed for good"),
    "job.bury": Action(_of("BURY", "id", number), harm="its worker loses the job, which counts as failed for good"),
    "job.later": Action(_of("LATER", "id", number), harm="its worker loses the job, which waits again"),
    "job.move": Action(lambda fields: f"MOVE {number(fields, 'id')} {word(fields, 'to')}",
                       harm="its worker loses the job, which waits in the other queue"),
    "job.kick_here": Action(lambda fields: f"KICK {word(fields, 'queue')} {number(fields, 'count')} HERE"),
    "job.retry": Action(_retry),
    "job.kick": Action(lambda fields: f"KICK {word(fields, 'queue')} {number(fields, 'count')}"),
    "fair.config": Action(lambda fields: f"SCHED CONFIG{words(fields, 'settings')}"),
    "group.config": Action(lambda fields: f"GROUP CONFIG {word(fields, 'group')}{words(fields, 'settings')}"),
    "group.pause": Action(_pause_group),
    "group.resume": Action(_of("GROUP RESUME", "group")),
    "group.delete": Action(_of("GROUP DELETE", "group"), harm="nothing holds back the jobs of the group any more"),
    "item.retry": Action(_of("ITEM RETRY", "item")),
    "item.release": Action(_of("ITEM RELEASE", "item")),
    "item.cancel": Action(_of("ITEM CANCEL", "item"),
                          harm="its jobs, and those that wait for it to be done, are removed for good"),
    "topic.bind": Action(_binding("BIND")),
    "topic.unbind": Action(_binding("UNBIND"), harm="the queue gets no more messages of the topic by this binding"),
    "topic.delete": Action(_of("TOPIC DELETE", "topic"), harm="no queue gets messages of this topic any more"),
    "worker.state": Action(lambda fields: f"WORKER SET {word(fields, 'worker')} STATE "
                                          f"{one_of(fields, 'state', 'RUN', 'PAUSE', 'STOP')}"),
    "worker.bounds": Action(_bounds),
    "session.end": Action(_of("SESSION END", "session", number),
                          harm="its client can no longer tell what was executed; its bound jobs go back"),
    "user.set": Action(_user, hidden=_key),
    "user.delete": Action(_of("USER DELETE", "user"), harm="the user can no longer log in"),
    "cluster.transfer": Action(_transfer, harm="another node leads; clients notice a short pause"),
    "cluster.offline": Action(lambda fields: "CLUSTER OFFLINE",
                              harm="no client is served by any node until the service is online again"),
    "cluster.online": Action(lambda fields: "CLUSTER ONLINE"),
    "node.offline": Action(lambda fields: "OFFLINE", here=True,
                           harm="this node serves no clients and does not lead until it is online again"),
    "node.online": Action(lambda fields: "ONLINE", here=True),
    "node.snapshot": Action(lambda fields: "CLUSTER SNAPSHOT", here=True),
}


def command(name: str, fields: Fields) -> tuple[Action, str, bytes]:
    """Return the action of this name, its line as it may be shown, and the whole command as bytes. Raises BadForm."""
    action = ACTIONS.get(name)
    if action is None:
        raise BadForm("there is no such action")
    line = action.line(fields)
    body = fields.get("body", "").encode() if action.data else b""
    hidden = "" if action.hidden is None else f" {action.hidden(fields)}"
    return action, line, f"{line}{hidden}\r\n".encode() + body
