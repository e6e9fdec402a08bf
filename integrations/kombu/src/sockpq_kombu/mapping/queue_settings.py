"""Translates AMQP's queue arguments into the server's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sockpq import QueueSettings

TEMPORARY_S = 3600.0        # a queue of one program, without x-expires, ends when nobody has used it for this long


def settings_of(arguments: Mapping[str, Any], temporary: bool) -> QueueSettings:
    """Return the settings.

    `arguments`: as in queue_declare; `temporary`: the queue is removed when its program ends.
    """
    settings: QueueSettings = {}
    if (ttl := arguments.get("x-message-ttl")) is not None:
        settings["ttl"] = max(float(ttl) / 1000, 0.001)
    if (idle := arguments.get("x-expires")) is not None:
        settings["idle"] = max(float(idle) / 1000, 1.0)
    elif temporary:
        settings["idle"] = TEMPORARY_S
    if (length := arguments.get("x-max-length")) is not None:
        settings["capacity"] = max(int(length), 1)
        settings["overflow"] = "refuse" if arguments.get("x-overflow", "drop-head") != "drop-head" else "drop_oldest"
    if arguments.get("x-delivery-limit") is not None:
        settings["tries"] = max(int(arguments["x-delivery-limit"]), 1)
    return settings
