"""`pqctl queue create`, `config`, `delete`, `purge`, `pause`, `resume`, and `pqctl config`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, cast

import click
from sockpq import BindingNotFound, Client

from sockpqd.pqctl.actions.existence import PULSE, QUEUE, TOPIC, existing, hint, must_exist
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, lasting, sized

BYTES = frozenset(("data_bytes_max", "error_bytes", "retain_bytes", "retained_bytes"))
SECONDS = frozenset(("expire", "keep", "ttl", "idle", "retain", "grace", "session_ttl", "cap", "group_keep", "per"))

# What 0 means where it is not a number of its kind (docs/PROTOCOL.md, Queues and their settings).
UNSET = {
    **dict.fromkeys(("expire", "ttl", "idle", "keep", "retain", "alarm"), "none"),
    **dict.fromkeys(("tries", "limit", "item_limit", "capacity", "data_bytes_max", "batch", "group_limit"), "no limit"),
}


def create(call: Call, queue: str, settings: Mapping[str, Any]) -> int:
    """Create a queue (QUEUE CREATE) with these settings."""
    with cluster_of(call, serving=True) as (client, _):
        with _pulse_of(client, settings):
            client.queue_create(queue, **settings)
        told = client.queue_config(queue)
    if call.as_json:
        call.answer("", {"queue": queue, "settings": told})
    else:
        call.print(f"{queue} is created")
    return DONE


def config(call: Call, queue: str, settings: Mapping[str, Any]) -> int:
    """Change a queue's settings and show them all (QUEUE CONFIG)."""
    with cluster_of(call, serving=True) as (client, _):
        new = _told_if_new(client, queue) if settings else None
        with existing(client, QUEUE, queue), _pulse_of(client, settings):
            told = client.queue_config(queue, **settings)
    if new is not None:
        say(new)
    return show_settings(call, {"queue": queue}, told)


def cluster_config(call: Call, settings: Mapping[str, Any]) -> int:
    """Change the cluster's settings and show them all (CONFIG)."""
    with cluster_of(call, serving=True) as (client, _):
        told = client.config(**settings)
    return show_settings(call, {}, told)


def delete(call: Call, queue: str, force: bool, leave: bool, yes: bool) -> int:
    """Delete a queue (QUEUE DELETE), after a confirmation with `force`; dead jobs stay with `leave`."""
    if leave and not force:
        raise click.UsageError("--leave goes with --force only")
    if force:
        confirm(f"Remove {queue} with all its jobs{' but dead ones' if leave else ''}, including running ones?", yes)
    with cluster_of(call, serving=True) as (client, _), existing(client, QUEUE, queue):
        client.queue_delete(queue, force=force, leave=leave)
    call.answer(f"{queue} is removed", {"queue": queue})
    return DONE


def purge(call: Call, queue: str, state: str, yes: bool) -> int:
    """Remove the jobs of a queue in one state (QUEUE PURGE)."""
    which = {
        "all": "that wait, are dead or have ended", "ended": "that have ended", "own": "that wait, run or are buried",
    }.get(state, f"that are {state}")
    confirm(f"Remove the jobs of {queue} {which}?", yes)
    with cluster_of(call, serving=True) as (client, _), existing(client, QUEUE, queue):
        removed = client.queue_purge(
            queue, cast(Literal["ready", "delayed", "running", "dead", "buried", "ended", "own", "all"], state),
        )
    call.answer(f"{counted(removed, 'job')} removed from {queue}", {"queue": queue, "removed": removed})
    return DONE


def pause(call: Call, queue: str, direction: str, seconds: float | None) -> int:
    """Pause a queue (QUEUE PAUSE), its input, its output or both."""
    if seconds is not None and direction != "out":
        raise click.UsageError("--for goes with `out` only")
    with cluster_of(call, serving=True) as (client, _):
        new = _told_if_new(client, queue)
        client.queue_pause(queue, cast(Literal["in", "out", "all"], direction), seconds=seconds)
    if new is not None:
        say(new)
    stopped = {"in": "takes no jobs", "out": "gives no jobs", "all": "takes and gives no jobs"}[direction]
    end = f"until `pqctl queue resume {queue}`" if seconds is None else f"for {lasting(seconds)}"
    call.answer(f"{queue} {stopped} {end}", {
        "queue": queue, "paused": direction, **({} if seconds is None else {"seconds": seconds}),
    })
    return DONE


def resume(call: Call, queue: str) -> int:
    """Resume a paused queue (QUEUE RESUME)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, QUEUE, queue):
        client.queue_resume(queue)
    call.answer(f"{queue} takes and gives jobs", {"queue": queue, "paused": None})
    return DONE


def show_settings(call: Call, whose: Mapping[str, object], settings: Mapping[str, str]) -> int:
    """Print settings; `whose`: the fields that precede them in JSON."""
    if call.as_json:
        call.answer("", {**whose, "settings": dict(settings)})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    rows = [(name, with_unit(name, value)) for name, value in settings.items()]
    print_rows(call, (Column("setting"), Column("value", folds=True)), rows)
    return DONE


def with_unit(name: str, value: str) -> str:
    """Return the value of a setting as it is given, followed by what 0 means, or a long time or large size in words."""
    if not value.isdigit():
        return value
    if value == "0" and name in UNSET:
        return f"0 ({UNSET[name]})"
    if name in SECONDS:
        return f"{value} s" if int(value) < 120 else f"{value} s ({lasting(int(value))})"
    if name in BYTES:
        unit = "byte" if value == "1" else "bytes"
        return f"{value} {unit}" if int(value) < 1000 else f"{value} {unit} ({sized(int(value))})"
    return value


def bind(call: Call, topic: str, queue: str, pattern: str | None) -> int:
    """Bind a queue to a topic (TOPIC BIND)."""
    with cluster_of(call, serving=True) as (client, _):
        client.topic_bind(topic, queue, pattern)
    call.answer(f"{queue} is bound to {topic}", {"topic": topic, "queue": queue, "pattern": pattern})
    return DONE


def unbind(call: Call, topic: str, queue: str, pattern: str | None) -> int:
    """Remove a binding (TOPIC UNBIND)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, TOPIC, topic):
        try:
            client.topic_unbind(topic, queue, pattern)
        except BindingNotFound:
            so = "" if pattern is None else f" with the pattern {pattern}"
            raise Failure(REFUSED, f"{queue} is not bound to {topic}{so}: `pqctl topic list {topic}` shows what is"
                          ) from None
    call.answer(f"{queue} is no longer bound to {topic}", {"topic": topic, "queue": queue, "pattern": pattern})
    return DONE


def delete_topic(call: Call, topic: str) -> int:
    """Remove all bindings of a topic (TOPIC DELETE)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, TOPIC, topic):
        client.topic_delete(topic)
    call.answer(f"{topic} is removed", {"topic": topic})
    return DONE


def _pulse_of(client: Client, settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Turn the answer that a pulse named by the settings does not exist into a Failure."""
    return existing(client, PULSE, settings["pulse"]) if settings.get("pulse") else nullcontext()


def _told_if_new(client: Client, queue: str) -> str | None:
    """Return a warning if the queue does not exist yet, as its name may be misspelt; None if it does."""
    try:
        must_exist(client, queue)
    except Failure:
        return f"{queue} is a new queue ({hint(client, QUEUE, queue)})"
    return None
