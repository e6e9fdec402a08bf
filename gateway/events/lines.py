"""The lines that subscribers get (PROTOCOL "SUBSCRIBE, UNSUBSCRIBE")."""

from __future__ import annotations

from sockpqd.core import Event


def line_of(event: Event) -> bytes:
    """The line of one event."""
    if event.type == "LEADER":
        number, node, client = event.words
        host, _, port = str(client).rpartition(":")
        return f"250 {event.seq} LEADER {number} {node} {host.strip('[]') or '-'} {port or '-'}\r\n".encode()
    words = "".join([f" {word}" for word in event.words])
    return f"250 {event.seq} {event.type}{' ' + event.name if event.name else ''}{words}\r\n".encode()


def message(newest: int, channel: str, data: bytes) -> bytes:
    """A message of NOTIFY; `newest`: the number of the newest event, as it has none of its own."""
    return f"250 {newest} MSG {channel} {len(data)}\r\n".encode() + data


def gap(first: int, last: int) -> bytes:
    """The line that says that events of these numbers may be missing."""
    return b"250 %d GAP %d %d\r\n" % (last, first, last)


def numbered(seq: int, line: bytes) -> bytes:
    """The same line with another number."""
    return b"250 %d " % seq + line.split(b" ", 2)[2]
