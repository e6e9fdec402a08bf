"""Reads the answer to CLUSTER FEED: bytes in, frames, checkpoints and marks out."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.cluster.api import Checkpoint, Frame

LINE_BYTES_MAX = 256
ENTRY_BYTES_MAX = 64 << 20          # more than any entry has (cluster/limits.py): longer ones are not waited for


class StreamBroken(Exception):
    """The origin sent something that is not a feed."""


class FeedEnded(Exception):
    """The origin ended the feed; the message is its last line."""


class Mark(Struct, frozen=True):
    """The progress of a feed: all entries up to `index` were sent, of `executed` that there were at this moment."""

    index: int
    executed: int
    age_ms: int                     # of the server's state: it may be cut off from its cluster


Item = Frame | Checkpoint | Mark


class FeedStream:
    """The items of a feed, without its first line."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._failed: Exception | None = None

    def items(self, data: bytes) -> list[Item]:
        """Return the items that these bytes complete.

        Raises FeedEnded and StreamBroken, once the items before the end have been returned.
        """
        if self._failed is not None:
            raise self._failed
        buffer = self._buffer
        buffer += data
        found: list[Item] = []
        at = 0
        try:
            while (end := buffer.find(b"\r\n", at, at + LINE_BYTES_MAX)) >= 0:
                line, after = bytes(buffer[at:end]), end + 2
                if len(words := line.split()) == 4 and not line.startswith(b"NOW "):
                    index, now_ms, seed, length = map(int, words)
                    if not 0 <= length <= ENTRY_BYTES_MAX:
                        raise StreamBroken(f"an entry of {length} bytes")
                    if len(buffer) < after + length:
                        break
                    found.append(Frame(index, now_ms, seed, bytes(buffer[after:after + length])))
                    after += length
                else:
                    found.append(_line(line, words))
                at = after
            else:
                if len(buffer) - at > LINE_BYTES_MAX:
                    raise StreamBroken("a line without an end")
        except ValueError as error:
            self._fail(StreamBroken(str(error)), found)
        except (FeedEnded, StreamBroken) as error:
            self._fail(error, found)
        del buffer[:at]
        return found

    def _fail(self, error: Exception, found: list[Item]) -> None:
        self._failed = error
        if not found:
            raise error


def _line(line: bytes, words: list[bytes]) -> Item:
    if line.startswith(b"NOW ") and len(words) == 4:
        return Mark(int(words[1]), int(words[2]), int(words[3]))
    if line.startswith(b"HASH ") and len(words) == 3:
        return Checkpoint(int(words[1]), bytes.fromhex(words[2].decode("ascii")))
    text = line.decode("ascii", "replace")
    if words and len(words[0]) == 3 and words[0].isdigit():
        raise FeedEnded(text)
    raise StreamBroken(text)
