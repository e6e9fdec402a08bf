"""Notifies systemd as sd_notify(3) does it; without systemd nothing is sent."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(words: str) -> None:
    """Send words like READY=1 to the service manager that started the program, if there is one (sd_notify)."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    address = f"\0{name[1:]}" if name.startswith("@") else name         # @: an abstract socket
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.sendto(words.encode(), address)
