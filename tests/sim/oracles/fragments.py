"""What the log has in fragments, put together again: the operations that were executed."""

from __future__ import annotations

from sockpqd.core import Fragment, FragmentsMissing, LastFragment, Operation, Reply, decode_operation, encode_operation


def ends(last: LastFragment, operation: Operation) -> bool:
    """Are these the last bytes of the operation?"""
    return encode_operation(operation)[last.offset:] == last.data


class Fragments:
    """Fed with all entries in their order; it believes the replies, without rules of its own for what is missing."""

    def __init__(self) -> None:
        self._bytes: dict[int, bytes] = {}
        self.executed = 0

    def joined(self, operations: list[Operation], replies: list[Reply]) -> tuple[list[Operation], list[Reply]]:
        """The operations and replies of an entry without fragments; those without a reply are as they were."""
        whole: list[Operation] = []
        answers: list[Reply] = []
        for operation, reply in zip(operations, replies, strict=False):
            if isinstance(operation, Fragment | LastFragment):
                data = (self._bytes.get(operation.number, b"") if operation.offset else b"") + operation.data
                self._bytes = {} if isinstance(reply, FragmentsMissing) else {operation.number: data}
                if isinstance(operation, Fragment) or isinstance(reply, FragmentsMissing):
                    continue
                operation = decode_operation(data)
                self.executed += 1
            whole.append(operation)
            answers.append(reply)
        return [*whole, *operations[len(replies):]], answers
