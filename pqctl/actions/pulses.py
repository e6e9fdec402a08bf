"""`pqctl pulse ..`: show, change and watch pulses."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import click
from sockpq import BadArguments, PulseInUse, PulseNotFound

from sockpqd.pqctl.actions.existence import PULSE, existing
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.files import read_stream
from sockpqd.pqctl.output.text import counted

PERIODS = 60
PAYLOAD_BYTES_MAX = 64 << 10
LEAST_PAUSE_S = 0.5             # between two looks, however short a period is
OWN = "queue:"                  # before a queue's name: its own pulse
WAITS = "--max-wait is for a pulse with --together"
BARS = " ▁▂▃▄▅▆▇█"

SHOWN = {               # names of figures for people; the others are the same
    "sleepuntil": "asleep until", "maxpause": "longest pause", "maxrun": "result within", "maxwait": "wait for others",
    "deny": "denied", "open": "without result",
}
TIMES = frozenset(("pause", "step", "maxpause", "maxrun", "maxwait"))      # in seconds
YES_OR_NO = frozenset(("deny", "together", "spread"))
Figures = Mapping[str, float | None]


def show_list(call: Call) -> int:
    """Print a line for each pulse (PULSE LIST, PULSE STAT)."""
    with reading(call) as (client, server):
        found: list[tuple[str, Figures]] = []
        for name in client.pulses(server=server):
            try:
                found.append((name, client.pulse_stat(name, server=server)))
            except PulseNotFound:               # it was deleted meanwhile
                continue
    if call.as_json:
        call.answer("", {"pulses": [{"name": name, **figures} for name, figures in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("pulse", folds=True), Column("rate"), Column("now"), Column("pause"), Column("asleep until")]
        columns += [Column(title, figures=True) for title in ("waiting", "granted", "errors")]
        print_rows(call, columns, [
            (name, f"{_word(one, 'rate')} per {_word(one, 'per')} s", "denied" if one["deny"] else _word(one, "now"),
             f"{_word(one, 'pause')} s",
             _asleep(one), _word(one, "waiting"), _word(one, "granted"), _word(one, "errors")) for name, one in found
        ])
    else:
        call.print("there is no pulse")
    return DONE


def show_stat(call: Call, name: str) -> int:
    """Print the figures of one pulse (PULSE STAT)."""
    with reading(call) as (client, server), existing(client, PULSE, name, server):
        figures = client.pulse_stat(name, server=server)
    if call.as_json:
        call.answer("", {"pulse": name, **figures})
    else:
        from sockpqd.pqctl.output.table import Column, print_rows

        print_rows(call, (Column("pulse"), Column(name, folds=True)), [
            (SHOWN.get(word, word), _in_words(figures, word)) for word in figures if word != "per"
        ])
    return DONE


def create(call: Call, name: str, settings: Mapping[str, Any]) -> int:
    """Create a pulse (PULSE CREATE) with these settings."""
    if "max_wait" in settings and "together" not in settings:
        raise click.UsageError(WAITS)
    with cluster_of(call, serving=True) as (client, _):
        client.pulse_create(name, **settings)
    call.answer(f"{name} is created", {"pulse": name})
    return DONE


def config(call: Call, name: str, settings: Mapping[str, Any]) -> int:
    """Change settings of a pulse (PULSE CONFIG)."""
    queue = name.removeprefix(OWN)
    if queue != name and not settings.keys().isdisjoint({"rate", "per"}):
        raise click.UsageError(f"its rate is set with the queue's: `pqctl queue config {queue} --rate N --per SECONDS`")
    with cluster_of(call, serving=True) as (client, _), existing(client, PULSE, name):
        try:
            client.pulse_config(name, **settings)
        except BadArguments as error:
            if "max_wait" in settings and "together" not in client.pulse_stat(name):
                raise click.UsageError(WAITS) from error
            raise
    call.answer(f"{name} is changed", {"pulse": name})
    return DONE


def delete(call: Call, name: str) -> int:
    """Remove a pulse (PULSE DELETE), if no queue uses it."""
    queue = name.removeprefix(OWN)
    ends = f"queue config {queue} --rate 0" if queue != name else "queue config QUEUE --pulse ''"
    with cluster_of(call, serving=True) as (client, _), existing(client, PULSE, name):
        try:
            client.pulse_delete(name)
        except PulseInUse as error:
            raise Failure(REFUSED, f"refused: {error} (a queue has it until `pqctl {ends}`)") from error
    call.answer(f"{name} is removed", {"pulse": name})
    return DONE


def change_payload(call: Call, name: str, payload: str, path: str | None, deny: bool) -> int:
    """Set the payload of each turn (PULSE SET)."""
    data = payload.encode() if path is None else read_stream(path, PAYLOAD_BYTES_MAX)
    with cluster_of(call, serving=True) as (client, _), existing(client, PULSE, name):
        client.pulse_set(name, data, deny=deny)
    denied = "its turns are denied until it is set without --deny"
    what = denied if deny else f"{counted(len(data), 'byte')} with each turn"
    call.answer(f"{name} is set: {what}", {"pulse": name, "bytes": len(data), "deny": deny})
    return DONE


def watch(call: Call, name: str, lines: int | None) -> int:
    """Print a line every period, with the turns of the last periods as bars."""
    granted: deque[int] = deque(maxlen=PERIODS)
    before: int | None = None
    while lines is None or lines > 0:
        with reading(call) as (client, server), existing(client, PULSE, name, server):
            figures = client.pulse_stat(name, server=server)
        total = int(figures["granted"] or 0)
        if before is not None:
            granted.append(total - before)
        before = total
        told = (
            f"now {_word(figures, 'now')} of {_word(figures, 'rate')}, pause {_word(figures, 'pause')} s, "
            f"waiting {_word(figures, 'waiting')}, errors {_word(figures, 'errors')}"
        )
        told += ", denied" if figures["deny"] else ""
        told += f", asleep until {_asleep(figures)}" if figures["sleepuntil"] else ""
        call.print(
            json.dumps({"pulse": name, **figures}) if call.as_json
            else f"{told}  {_bars(granted, int(figures['rate'] or 1))}"
        )
        lines = lines if lines is None else lines - 1
        if lines != 0:
            time.sleep(max(float(figures["per"] or 0), LEAST_PAUSE_S))
    return DONE


def _bars(granted: deque[int], rate: int) -> str:
    """A bar for each period, full at the pulse's rate."""
    top = max(rate, *granted) if granted else rate
    return "".join(BARS[min(-(-count * (len(BARS) - 1) // top), len(BARS) - 1)] for count in granted)


def _word(figures: Figures, name: str) -> str:
    value = figures.get(name)
    return "-" if value is None else f"{value:,}"


def _in_words(figures: Figures, name: str) -> str:
    """Return one figure for people: with its unit, as a moment, or as yes or no."""
    value = _word(figures, name)
    if name == "rate":
        return f"{value} per {_word(figures, 'per')} s"
    if name == "sleepuntil":
        return _asleep(figures)
    if name in YES_OR_NO:
        return "yes" if figures[name] else "no"
    return f"{value} s" if name in TIMES and value != "-" else value


def _asleep(figures: Figures) -> str:
    from sockpqd.pqctl.parameters import local_time

    return local_time(int(figures["sleepuntil"] or 0)) if figures["sleepuntil"] else "-"
