"""The lines of QUEUE and CONFIG."""

from __future__ import annotations

from core import (
    Configure,
    ConfigureQueue,
    CreateQueue,
    JobState,
    Order,
    PauseQueue,
    QueueChange,
    ResumeQueue,
    Then,
)
from gateway.limits import (
    BATCH_JOBS_MAX,
    PORTION_MAX,
    SESSION_TTL_MS_MAX,
    SESSION_TTL_MS_MIN,
    SETTING_MAX,
    WEIGHT_MAX,
)
from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, between, milliseconds, name, prefix
from gateway.protocol.grammar.heads import Words
from gateway.protocol.grammar.options import EXPIRE, POLICIES, Option, one_of, read_options

_number = between(0, SETTING_MAX)

SETTINGS = {
    b"EXPIRE": EXPIRE,
    b"ORDER": Option("order", one_of({b"FIFO": Order.FIFO, b"TIME": Order.TIME})),
    b"TRIES": Option("tries", _number, behind=(b"DEAD", Option("dead", name))),
    b"WEIGHT": Option("weight", between(1, WEIGHT_MAX)),
    b"LIMIT": Option("limit", _number),
    b"ITEMLIMIT": Option("item_limit", _number),
    b"CAPACITY": Option("capacity", _number),
    b"MAXDATA": Option("data_bytes_max", _number),
    b"BATCH": Option("batch", between(0, BATCH_JOBS_MAX)),
    b"PORTION": Option("portion", between(1, PORTION_MAX)),
    b"KEEP": Option("keep_ms", milliseconds),
}

_purged = one_of({
    b"READY": JobState.READY, b"DELAYED": JobState.DELAYED, b"DEAD": JobState.DEAD, b"ALL": None,
})
_paused = one_of({b"IN": (True, False), b"OUT": (False, True), b"ALL": (True, True)})


def _change(words: Words) -> QueueChange:
    """The settings behind QUEUE CREATE|CONFIG <queue>."""
    change = QueueChange(**read_options(words, 3, SETTINGS))
    if change.dead is not None and change.dead == name(words[2]):
        raise ArgumentError
    return change


def queue(words: Words) -> requests.Command:
    match words[1:]:
        case [b"CREATE", queue, *_]:
            return CreateQueue(name(queue), _change(words))
        case [b"CONFIG", queue]:
            return requests.QueueConfig(name(queue))
        case [b"CONFIG", queue, *_]:
            return ConfigureQueue(name(queue), _change(words))
        case [b"DELETE", queue]:
            return requests.DropQueue(name(queue), force=False)
        case [b"DELETE", queue, b"FORCE"]:
            return requests.DropQueue(name(queue), force=True)
        case [b"PURGE", queue, state]:
            return requests.PurgeRequest(name(queue), _purged(state))
        case [b"PAUSE", queue, way]:
            return PauseQueue(name(queue), *_paused(way))
        case [b"RESUME", queue]:
            return ResumeQueue(name(queue))
        case [b"STAT", queue]:
            return requests.QueueStat(name(queue))
        case [b"LIST"]:
            return requests.QueueList("")
        case [b"LIST", word]:
            return requests.QueueList(prefix(word))
    raise ArgumentError


def _session_ttl_ms(word: bytes) -> int:
    ttl_ms = milliseconds(word)
    if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
        raise ArgumentError
    return ttl_ms


_switch = one_of({b"ON": True, b"OFF": False})

CONFIG = {
    b"EXPIREDEFAULT": Option("expire_default", one_of({b"LATER": Then.LATER, b"DONE": Then.DONE})),
    b"AUTOCREATE": Option("autocreate", _switch),
    b"POLICY": Option("policy", one_of(POLICIES)),
    b"GRACE": Option("grace_ms", milliseconds),
    b"SESSIONTTL": Option("session_ttl_ms", _session_ttl_ms),
    b"FASTEMPTY": Option("fast_empty", _switch),
}


def config(words: Words) -> requests.Config | Configure:
    """All settings of the cluster, or a new value for one."""
    if len(words) == 1:
        return requests.Config()
    if len(words) != 3:
        raise ArgumentError
    return Configure(**read_options(words, 1, CONFIG))


_policy = one_of(POLICIES)


def policy(words: Words) -> requests.PolicyDefault:
    if len(words) != 2:
        raise ArgumentError
    return requests.PolicyDefault(_policy(words[1]))
