"""The grammar of QUEUE, CONFIG and POLICY."""

from __future__ import annotations

from typing import Any

from sockpqd.core import (
    BACKOFF_MS_MAX,
    ERRORS_BYTES,
    OWN_PREFIX,
    REMEMBERED_OF_QUEUE,
    RETAIN_BYTES,
    RETAIN_MAX,
    Configure,
    ConfigureQueue,
    DeleteQueue,
    MoveJobs,
    Order,
    Overflow,
    PauseQueue,
    Purged,
    PurgeQueue,
    QueueChange,
    Sched,
    Then,
)
from sockpqd.gateway.limits import (
    BATCH_JOBS_MAX,
    IDLE_MS_MIN,
    PORTION_MAX,
    SETTING_MAX,
    WEIGHT_MAX,
)
from sockpqd.gateway.protocol.arguments import (
    PLACE,
    SIGNED_MAX,
    ArgumentError,
    WrongWord,
    between,
    milliseconds,
    name,
    prefix,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar import groups
from sockpqd.gateway.protocol.grammar.parts.options import DEFAULT_POLICIES, EXPIRE, Option, one_of, read_options
from sockpqd.gateway.protocol.grammar.parts.options import or_off as _or_off
from sockpqd.gateway.protocol.grammar.pulses import per_ms, pulse_name, rate
from sockpqd.gateway.protocol.grammar.sessions import session_ttl_ms
from sockpqd.gateway.protocol.tokens import seconds

_number = between(0, SETTING_MAX)
_bytes = between(0, SIGNED_MAX)



def _idle_ms(word: bytes) -> int:
    idle_ms = milliseconds(word)
    if idle_ms < IDLE_MS_MIN:
        raise WrongWord(f"at least {seconds(IDLE_MS_MIN)} s", word)
    return idle_ms


_order = one_of({b"FIFO": Order.FIFO, b"TIME": Order.TIME})
_SCHEDS = {b"FIFO": Sched.FIFO, b"FAIR": Sched.FAIR, b"GROUPS": Sched.GROUPS}
_overflow = one_of({b"REFUSE": Overflow.REFUSE, b"DROPOLDEST": Overflow.DROPOLDEST})

SETTINGS = {
    b"EXPIRE": Option("expire_ms", _or_off(milliseconds), behind=EXPIRE.behind),
    b"ORDER": Option("order", _or_off(_order, Order.FIFO)),
    b"TRIES": Option("tries", _or_off(_number), behind=(b"DEAD", Option("dead", name))),
    b"WEIGHT": Option("weight", _or_off(between(1, WEIGHT_MAX), 1)),
    b"LIMIT": Option("limit", _or_off(_number)),
    b"ITEMLIMIT": Option("item_limit", _or_off(_number)),
    b"CAPACITY": Option("capacity", _or_off(_number)),
    b"MAXDATA": Option("data_bytes_max", _or_off(_number)),
    b"BATCH": Option("batch", _or_off(between(0, BATCH_JOBS_MAX))),
    b"PORTION": Option("portion", _or_off(between(1, PORTION_MAX), PORTION_MAX)),
    b"KEEP": Option("keep_ms", _or_off(milliseconds)),
    b"TTL": Option("ttl_ms", _or_off(milliseconds)),
    b"IDLE": Option("idle_ms", _or_off(_idle_ms)),
    b"SCHED": Option("sched", _or_off(one_of(_SCHEDS), Sched.FIFO)),
    b"OVERFLOW": Option("overflow", _or_off(_overflow, Overflow.REFUSE)),
    b"ALARM": Option("alarm", _or_off(_number)),
    b"ERRORBYTES": Option("error_bytes", _or_off(between(0, SIGNED_MAX), ERRORS_BYTES)),
    b"BACKOFF": Option("backoff_ms", _or_off(milliseconds), second=("backoff_max_ms", milliseconds), alone=(b"OFF",)),
    b"DEDUPMAX": Option("dedup_max", _or_off(_number, REMEMBERED_OF_QUEUE)),
    b"RETAIN": Option("retain_ms", _or_off(milliseconds)),
    b"RETAINMAX": Option("retain_max", _or_off(_number, RETAIN_MAX)),
    b"RETAINBYTES": Option("retain_bytes", _or_off(_bytes, RETAIN_BYTES)),
    b"NUMBERED": Option("numbered", _or_off(one_of({b"0": False, b"1": True}), off=False)),
}

def _shared_pulse(word: bytes) -> str:
    pulse = pulse_name(word)
    if pulse.startswith(OWN_PREFIX):
        raise ArgumentError("PULSE wants a pulse of its own name, not a queue's pulse")
    return pulse


_PER = Option("per_ms", per_ms, behind=(b"SPREAD", Option("spread")))
SETTINGS[b"RATE"] = Option("rate", _or_off(rate), behind=(b"PER", _PER))
SETTINGS.update(groups.OF_QUEUES)       # after RATE, which is named when PER stands alone
SETTINGS[b"PULSE"] = Option("pulse", _or_off(_shared_pulse, ""))
CREATE_SETTINGS = {**SETTINGS, b"BOUND": Option("bound")}
_ELSEWHERE = {b"BOUND": "BOUND is for QUEUE CREATE"}

_purged = one_of({purged.name.encode(): purged for purged in Purged})
_paused = one_of({b"IN": (True, False), b"OUT": (False, True), b"ALL": (True, True)})


def _change(found: dict[str, Any], words: Words) -> QueueChange:
    """The settings found after QUEUE CREATE|CONFIG <queue>."""
    if bool(found.get("rate")) != ("per_ms" in found):
        raise ArgumentError("a rate is RATE <n> PER <seconds>, or RATE OFF")
    groups.check_rate("GROUPRATE", found.get("group_rate"), found.get("group_per_ms"))
    if found.get("rate") and found.get("pulse"):
        raise ArgumentError("RATE and PULSE exclude each other")
    longest_ms = found.get("backoff_max_ms")
    if longest_ms is not None and not 0 < found["backoff_ms"] <= longest_ms <= BACKOFF_MS_MAX:
        raise ArgumentError(f"BACKOFF wants 0 < first <= max <= {seconds(BACKOFF_MS_MAX)} s, or OFF")
    change = QueueChange(**found)
    if change.dead is not None and change.dead == name(words[1]):
        raise ArgumentError("DEAD wants another queue")
    return change


def queue_create(words: Words) -> Command:
    """QUEUE CREATE <queue>, with or without settings; BOUND comes last."""
    if len(words) < 2:
        raise ArgumentError("QUEUE CREATE takes a queue, and its settings")
    found = read_options(words, 2, CREATE_SETTINGS)
    bound = found.pop("bound", False)
    if bound and words[-1] != b"BOUND":
        raise ArgumentError("BOUND stands at the end of the line")
    return Command(ConfigureQueue(name(words[1]), _change(found, words), create=True), bound=bound)


def queue_settings(words: Words) -> Command | None:
    """QUEUE CONFIG <queue>: show its settings. Arguments: the queue."""
    return one_queue(words) if len(words) == 2 else None


def queue_config(words: Words) -> Command:
    """QUEUE CONFIG <queue> with settings: change them."""
    if len(words) < 2:
        raise ArgumentError("QUEUE CONFIG takes a queue, and its settings")
    return Command(ConfigureQueue(name(words[1]), _change(read_options(words, 2, SETTINGS, _ELSEWHERE), words)))


def queue_delete(words: Words) -> Command:
    """QUEUE DELETE <queue> [FORCE [LEAVE]]."""
    match words[1:]:
        case [queue]:
            return Command(DeleteQueue(name(queue), force=False))
        case [queue, b"FORCE"]:
            return Command(DeleteQueue(name(queue), force=True))
        case [queue, b"FORCE", b"LEAVE"]:
            return Command(DeleteQueue(name(queue), force=True, leave=True))
    raise ArgumentError("QUEUE DELETE takes a queue, and perhaps FORCE, or FORCE LEAVE")


def queue_purge(words: Words) -> Command:
    """QUEUE PURGE <queue> <state>."""
    if len(words) != 3:
        raise ArgumentError("QUEUE PURGE takes a queue and READY, DELAYED, RUNNING, DEAD, BURIED, ENDED, OWN or ALL")
    return Command(PurgeQueue(name(words[1]), _purged(words[2])))


_MOVE = {b"COUNT": Option("count", between(1, SIGNED_MAX)), b"DIED": Option("died", name)}


def queue_move(words: Words) -> Command:
    """QUEUE MOVE <from> <to> [COUNT <n>] [DIED <queue>], or QUEUE MOVE <from> <to> SEQ <n>."""
    if len(words) < 3:
        raise ArgumentError("QUEUE MOVE takes two queues, and perhaps COUNT and DIED, or SEQ")
    queue, to = name(words[1]), name(words[2])
    if queue == to:
        raise ArgumentError("QUEUE MOVE wants another queue")
    if words[3:4] == [b"SEQ"]:
        if len(words) != 5:
            raise ArgumentError("SEQ takes the number of a place, and stands alone")
        return Command(MoveJobs(queue, to, 1, seq=unsigned(words[4], PLACE)))
    options = {"count": SIGNED_MAX, **read_options(words, 3, _MOVE)}
    return Command(MoveJobs(queue, to, **options))


def queue_pause(words: Words) -> Command:
    """QUEUE PAUSE <queue> IN|OUT|ALL, or OUT FOR <sec>."""
    match words[1:]:
        case [queue, b"OUT", b"FOR", length]:
            return Command(PauseQueue(name(queue), incoming=False, outgoing=True, pause_ms=milliseconds(length)))
    if len(words) != 3:
        raise ArgumentError("QUEUE PAUSE takes a queue and IN, OUT, ALL or OUT FOR <seconds>")
    return Command(PauseQueue(name(words[1]), *_paused(words[2])))


def queue_resume(words: Words) -> Command:
    """QUEUE RESUME <queue>."""
    if len(words) != 2:
        raise ArgumentError("QUEUE RESUME takes a queue")
    return Command(PauseQueue(name(words[1]), incoming=False, outgoing=False))


def one_queue(words: Words) -> Command:
    """A verb followed by a queue. Arguments: the queue."""
    if len(words) != 2:
        raise ArgumentError(f"{words[0].decode()} takes a queue")
    return Command(arguments=(name(words[1]),))


def queue_list(words: Words) -> Command:
    """QUEUE LIST [<prefix>*]. Arguments: the prefix, "" for all."""
    if len(words) > 2 or (len(words) == 2 and not words[1].endswith(b"*")):
        raise ArgumentError("QUEUE LIST takes a prefix: mail*")
    return Command(arguments=(prefix(words[1]) if len(words) == 2 else "",))


_switch = one_of({b"ON": True, b"OFF": False})

CONFIG = {
    b"EXPIREDEFAULT": Option("expire_default", one_of({b"LATER": Then.LATER, b"DONE": Then.DONE})),
    b"AUTOCREATE": Option("autocreate", _switch),
    b"POLICY": Option("policy", one_of(DEFAULT_POLICIES)),
    b"GRACE": Option("grace_ms", milliseconds),
    b"SESSIONTTL": Option("session_ttl_ms", session_ttl_ms),
    b"FASTEMPTY": Option("fast_empty", _switch),
    b"RETAINEDBYTES": Option("retained_bytes", _bytes),
}


def settings(words: Words) -> Command | None:
    """CONFIG without arguments: show all settings."""
    return Command() if len(words) == 1 else None


def config(words: Words) -> Command:
    """CONFIG <setting> <value>: change one of the cluster's settings."""
    if len(words) != 3:
        raise ArgumentError(f"CONFIG takes a setting, one of {', '.join(map(bytes.decode, CONFIG))}, and its value")
    return Command(Configure(**read_options(words, 1, CONFIG)))


_policy = one_of(DEFAULT_POLICIES)


def policy(words: Words) -> Command:
    """POLICY <policy>: the default of this connection's GETs for choosing a queue. Arguments: the policy."""
    if len(words) != 2:
        raise ArgumentError("POLICY takes the name of a policy: RR")
    return Command(arguments=(_policy(words[1]),))
