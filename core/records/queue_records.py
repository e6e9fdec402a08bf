"""The records of one queue, the oldest first; expired ones at the front are no longer shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from sockpqd.core.records.block import Block


class QueueRecords:
    """`count` current records of a queue, with `total_bytes`. Positions are counted from the first record ever.

    `over`: the records before this position have expired. `due_ms`, `listed_ms`: when the first one expires, and when
    it ended, as indexed in Records; the actual times may be later.
    """

    __slots__ = ("blocks", "count", "due_ms", "listed_ms", "over", "total_bytes")

    def __init__(self) -> None:
        self.blocks: deque[Block] = deque()
        self.over = 0
        self.count = 0
        self.total_bytes = 0
        self.due_ms = 0
        self.listed_ms = 0

    @property
    def end(self) -> int:
        """The position of the next record."""
        return self.blocks[-1].first + len(self.blocks[-1]) if self.blocks else 0

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The position before which records have expired, the number of the current ones, and their bytes."""
        return self.over, self.count, self.total_bytes

    def first_end_ms(self) -> int | None:
        """Return the end of the oldest current record; None: there is none."""
        for block in self.blocks:
            for at in range(max(0, self.over - block.first), len(block)):
                if block.sizes[at]:
                    return block.ended_ms(at)
        return None

    def parts(self) -> list[tuple[Block, int]]:
        """Return the blocks, each with the position of its first record that has not expired."""
        return [
            (block, start) for block in self.blocks if (start := max(0, self.over - block.first)) < len(block)
        ]

    def counts_after(self, ended_ms: int) -> tuple[int, int]:
        """Return the number of current records that ended after `ended_ms`, and their bytes."""
        count, total_bytes = self.count, self.total_bytes
        for block in self.blocks:
            begun, known = max(0, self.over - block.first), block.ended_until(ended_ms)
            if known > begun:
                removed, removed_bytes = _kept(block, begun, known)
                count -= removed
                total_bytes -= removed_bytes
            if known < len(block):
                break
        return count, total_bytes

    def pass_removed(self) -> None:
        """Skip individually removed records at the front, so that the first current record always exists."""
        if not self.count:
            self.over = self.end
            return
        for block in self.blocks:
            at = max(0, self.over - block.first)
            while at < len(block) and not block.sizes[at]:
                at += 1
            self.over = max(self.over, block.first + at)
            if at < len(block):
                return

    def lower_removed(self, clock_ms: int) -> None:
        """Set the ends of removed records after the last current one to its end, if any is after `clock_ms`.

        Records end in order, so the next one must not depend on removed ones: a snapshot does not have them.
        """
        removed: list[Block] = []
        for block in reversed(self.blocks):
            if block.ended_ms(-1) <= clock_ms:
                return
            removed.append(block)
            if block.kept:
                ended_ms = block.last_ended_ms()
                for one in removed:
                    one.lower_removed(ended_ms)
                return

    def pass_until(self, ended_ms: int) -> None:
        """Expire the records that ended by the time `ended_ms`."""
        for block in self.blocks:
            known = block.ended_until(ended_ms)
            self._pass(block, known)
            if known < len(block):
                return

    def pass_beyond(self, count_max: int, bytes_max: int) -> None:
        """Expire the oldest records until the rest are within these limits on number and bytes."""
        for block in self.blocks:
            if self.over <= block.first and (
                self.count - block.kept > count_max or self.total_bytes - block.kept_bytes > bytes_max
            ):
                self._pass(block, len(block))
                continue
            while self.count > count_max or self.total_bytes > bytes_max:
                at = max(0, self.over - block.first)
                if at >= len(block):
                    break
                self._pass(block, at + 1)
            else:
                return

    def pass_positions(self, start: int) -> None:
        """Expire the first `start` records of the first block."""
        self._pass(self.blocks[0], start)

    def _pass(self, block: Block, known: int) -> None:
        """Expire the first `known` records of the block, which is the first one with current records."""
        begun = max(0, self.over - block.first)
        if known > begun:
            count, kept_bytes = _kept(block, begun, known)
            self.count -= count
            self.total_bytes -= kept_bytes
            self.over = block.first + known

    def passed_blocks(self) -> Iterator[Block]:
        """Yield and remove the blocks whose records have all expired."""
        while self.blocks and self.blocks[0].first + len(self.blocks[0]) <= self.over:
            yield self.blocks.popleft()


def _kept(block: Block, begun: int, known: int) -> tuple[int, int]:
    """Return the number of the records at these positions of the block that were not removed, and their bytes."""
    if begun == 0 and known == len(block):
        return block.kept, block.kept_bytes
    sizes = [size for size in block.sizes[begun:known] if size]
    return len(sizes), sum(sizes) - len(sizes)
