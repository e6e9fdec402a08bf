"""The grammar of QUEUE, CONFIG and POLICY."""

from __future__ import annotations

from core import (
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    JobState,
    Order,
    PauseQueue,
    PurgeQueue,
    QueueChange,
    ResumeQueue,
    Then,
)
from gateway.limits import (
    BATCH_JOBS_MAX,
    PORTION_MAX,
    SETTING_MAX,
    WEIGHT_MAX,
)
from gateway.protocol.arguments import ArgumentError, between, milliseconds, name, prefix
from gateway.protocol.command import Command, Words
from gateway.protocol.grammar.options import EXPIRE, POLICIES, Option, one_of, read_options
from gateway.protocol.grammar.sessions import session_ttl_ms

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
    """Parse the settings after QUEUE CREATE|CONFIG <queue>."""
    change = QueueChange(**read_options(words, 2, SETTINGS))
    if change.dead is not None and change.dead == name(words[1]):
        raise ArgumentError
    return change


def queue_create(words: Words) -> Command:
    """QUEUE CREATE <queue>, with or without settings."""
    if len(words) < 2:
        raise ArgumentError
    return Command(CreateQueue(name(words[1]), _change(words)))


def queue_settings(words: Words) -> Command | None:
    """QUEUE CONFIG <queue>: show its settings. Arguments: the queue."""
    return one_queue(words) if len(words) == 2 else None


def queue_config(words: Words) -> Command:
    """QUEUE CONFIG <queue> with settings: change them."""
    if len(words) < 2:
        raise ArgumentError
    return Command(ConfigureQueue(name(words[1]), _change(words)))


def queue_delete(words: Words) -> Command:
    """QUEUE DELETE <queue> [FORCE]."""
    force = len(words) == 3 and words[2] == b"FORCE"
    if len(words) != (3 if force else 2):
        raise ArgumentError
    return Command(DeleteQueue(name(words[1]), force))


def queue_purge(words: Words) -> Command:
    """QUEUE PURGE <queue> <state>."""
    if len(words) != 3:
        raise ArgumentError
    return Command(PurgeQueue(name(words[1]), _purged(words[2])))


def queue_pause(words: Words) -> Command:
    """QUEUE PAUSE <queue> IN|OUT|ALL."""
    if len(words) != 3:
        raise ArgumentError
    return Command(PauseQueue(name(words[1]), *_paused(words[2])))


def queue_resume(words: Words) -> Command:
    """QUEUE RESUME <queue>."""
    if len(words) != 2:
        raise ArgumentError
    return Command(ResumeQueue(name(words[1])))


def one_queue(words: Words) -> Command:
    """A verb followed by a queue. Arguments: the queue."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=(name(words[1]),))


def queue_list(words: Words) -> Command:
    """QUEUE LIST [<prefix>*]. Arguments: the prefix, "" for all."""
    if len(words) > 2:
        raise ArgumentError
    return Command(arguments=(prefix(words[1]) if len(words) == 2 else "",))


_switch = one_of({b"ON": True, b"OFF": False})

CONFIG = {
    b"EXPIREDEFAULT": Option("expire_default", one_of({b"LATER": Then.LATER, b"DONE": Then.DONE})),
    b"AUTOCREATE": Option("autocreate", _switch),
    b"POLICY": Option("policy", one_of(POLICIES)),
    b"GRACE": Option("grace_ms", milliseconds),
    b"SESSIONTTL": Option("session_ttl_ms", session_ttl_ms),
    b"FASTEMPTY": Option("fast_empty", _switch),
}


def settings(words: Words) -> Command | None:
    """CONFIG without arguments: show all settings."""
    return Command() if len(words) == 1 else None


def config(words: Words) -> Command:
    """CONFIG <setting> <value>: change one of the cluster's settings."""
    if len(words) != 3:
        raise ArgumentError
    return Command(Configure(**read_options(words, 1, CONFIG)))


_policy = one_of(POLICIES)


def policy(words: Words) -> Command:
    """POLICY <policy>: the default of this connection's GETs for choosing a queue. Arguments: the policy."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=(_policy(words[1]),))
