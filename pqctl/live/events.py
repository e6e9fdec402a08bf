"""`pqctl events`: prints events as they happen."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, cast, get_args

from sockpq import Event, EventsLost, EventType

from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import lasting, printable

ALL = tuple(event_type for event_type in get_args(EventType) if event_type != "MSG")


def follow(call: Call, types: tuple[str, ...], names: tuple[str, ...], after: int | None, wait: float | None) -> int:
    """Print events as they come."""
    with cluster_of(call) as (client, _):
        wanted = cast(tuple[EventType, ...], types or ALL)
        with client.events(wanted, names or None, after=after, wait=wait, timeout=call.timeout) as events:
            seen = False
            while True:
                try:
                    for event in events:
                        seen = True
                        call.print(json.dumps(as_fields(event)) if call.as_json else sentence(event))
                    if not seen and wait is not None:
                        say(f"no such event within {lasting(wait)}")
                    return DONE
                except EventsLost as lost:
                    say(f"{lost}: read the state again")
                    if call.as_json:
                        gap = {"seq": lost.last, "type": "GAP", "first": lost.first, "last": lost.last}
                        call.print(json.dumps(gap))


def sentence(event: Event) -> str:
    """The line of an event; message data that are not a single line of text are escaped."""
    if event.type != "MSG":
        return f"{event.seq} {event.type} {' '.join(event.words)}"
    shown = printable(event.data.decode(errors="backslashreplace"))
    escaped = shown.replace("\n", "\\n").replace("\t", "\\t")
    return f"{event.seq} MSG {' '.join(event.words)} {escaped}"


def as_fields(event: Event) -> dict[str, Any]:
    """The JSON object of an event."""
    fields: dict[str, Any] = {"seq": event.seq, "type": event.type, "name": event.name, "words": list(event.words)}
    if event.type == "MSG":
        fields["data_base64"] = b64encode(event.data).decode()
    return fields
