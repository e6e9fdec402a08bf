"""Counts TLS records: those without data (KeyUpdate, attempts to renegotiate, empty ones) cost more than a command.

Nothing above TLS notices such a record, so no budget of commands limits them, and OpenSSL handles all records that it
has in one call. So it gets a portion of records at a time, and the number of records without data is limited for each
connection.
"""

from __future__ import annotations

HEADER_BYTES = 5
PORTION_RECORDS = 32            # one KeyUpdate costs up to 30 microseconds
EMPTY_MAX = 32                  # records without data; rekeying needs one in millions
DATA_PER_EMPTY = 8              # this many records with data make up for one without


class TlsRecords:
    """The records that one connection receives, from its first byte on."""

    __slots__ = ("_debt", "_head", "_left", "_length")

    def __init__(self) -> None:
        self._left = 0          # bytes to come of the record that has begun,
        self._length = 0        # of so many
        self._head = b""        # an incomplete header
        self._debt = 0          # data records that would make up for those without data

    def portions(self, data: bytes) -> list[tuple[bytes, int]]:
        """Return what was received in portions of PORTION_RECORDS, each with the number of records that end in it."""
        head = self._head
        view = head + data if head else data
        size, shift, begin, count, end = len(view), len(head), 0, 0, self._left
        portions: list[tuple[bytes, int]] = []
        while end <= size:
            if end:
                count += 1
                if count == PORTION_RECORDS:
                    portions.append((data[begin:end - shift], count))
                    begin, count = end - shift, 0
            if size - end < HEADER_BYTES:
                self._head, self._left = view[end:], 0
                break
            self._length = HEADER_BYTES + (view[end + 3] << 8 | view[end + 4])
            end += self._length
        else:
            self._head, self._left = b"", end - size
        if not portions:
            return [(data, count)]
        if begin < len(data):
            portions.append((data[begin:], count))
        return portions

    @property
    def incomplete_bytes(self) -> int:
        """The bytes received of a record that has begun and is not complete."""
        return self._length - self._left if self._left else len(self._head)

    def too_many_empty(self, records: int, with_data: int) -> bool:
        """Count these records, `with_data` of which had some; return whether too many had none."""
        self._debt = max(self._debt + (records - with_data) * DATA_PER_EMPTY - with_data, 0)
        return self._debt > EMPTY_MAX * DATA_PER_EMPTY
