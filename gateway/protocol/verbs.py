"""Looks up the row of a line's verb, handles REQ before it, and has the row parse the line into a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sockpqd.core import End, GetWith, Touch
from sockpqd.gateway.limits import NUMBERED_BATCH_JOBS_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, unsigned
from sockpqd.gateway.protocol.command import NO_BODY, Command, Row, Words
from sockpqd.gateway.protocol.grammar.parts.bodies import JOBS, SNAPSHOT
from sockpqd.gateway.protocol.reasons import choice, shown
from sockpqd.gateway.protocol.request_id import digest_of
from sockpqd.gateway.protocol.responses import bad_arguments

REQ = b"REQ"
_NUMBER = "the number of REQ must be"
_TOO_MANY = f"more than {NUMBERED_BATCH_JOBS_MAX} jobs behind REQ"
USUAL_BYTES = 4             # tell the verbs apart that have a usual line

Rows = tuple[Row, ...]
# A row's usual line (see UsualLine) and whether data follow it, in one tuple, as it is read for each command.
Usual = tuple[
    Callable[[bytes, int], re.Match[bytes] | None], Callable[[re.Match[bytes], bytes], Command], bool, Row,
]


class Verbs:
    """All verbs of the protocol. The first word of a line is case-insensitive, all others are case-sensitive.

    There are also rows for the parser's own commands: `refused` for a command that cannot be executed, `broken` for a
    stream that cannot be parsed any further, and `data` for the data of a CLONE.
    """

    def __init__(self, rows: Iterable[Row], *, refused: Row, broken: Row, data: Row) -> None:
        self.rows = tuple(rows)
        self.refused = refused
        self.broken = broken
        self.data = data
        self._of_one_word: dict[bytes, Rows] = {}
        self._of_two_words: dict[bytes, dict[bytes, Rows]] = {}
        for row in self.rows:
            first, _, second = row.word.partition(b" ")
            table, word = (self._of_two_words.setdefault(first, {}), second) if second else (self._of_one_word, first)
            table[word] = (*table.get(word, ()), row)
        # The first row of each verb that has no two-word forms: nearly all lines are found here.
        self.plain = {word: rows[0] for word, rows in self._of_one_word.items() if word not in self._of_two_words}

        # By the beginning of their line, which no two such verbs have in common.
        self.usual: dict[bytes, Usual] = {
            (row.word + b" ")[:USUAL_BYTES]: (row.usual.match, row.usual.command, not row.body.optional, row)
            for row in self.rows if row.usual is not None
        }

    def read(self, words: Words) -> Command | None:
        """Parse a line into a command, None for an unknown verb; raises ArgumentError."""
        if words[0].upper() == REQ:
            return self._numbered(words)
        rows, words = self._find(words)
        for row in rows:
            command = row.parse(words)
            if command is not None:
                command.row = row
                return command
        return None

    def _find(self, words: Words) -> tuple[Rows, Words]:
        """Return the rows of a line's verb, and its words from the last word of the verb on."""
        verb = words[0].upper()
        family = self._of_two_words.get(verb)
        if family is None:
            return self._of_one_word.get(verb, ()), words
        if len(words) > 1 and words[1] in family:
            return family[words[1]], words[1:]
        if verb not in self._of_one_word:
            wanted, subject = choice([word.decode() for word in family]), f"{verb.decode()} wants"
            raise WrongWord(wanted, words[1] if len(words) > 1 else None, subject)
        return self._of_one_word[verb], words

    def _numbered(self, words: Words) -> Command:
        """Parse REQ <r> <command>, allowed for changes whose answer can be stored (spec/sessions 3.4)."""
        if len(words) < 3:
            raise ArgumentError("REQ takes a number and a command")
        number, words = unsigned(words[1], _NUMBER), words[2:]
        if number == 0:
            raise ArgumentError("the numbers of REQ begin with 1")
        words[0] = words[0].upper()
        command = None if words[0] == REQ else self.read(words)
        if command is None:
            raise ArgumentError(f"REQ stands before a command, not before {shown(words[0])}")
        if not command.row.numbered:
            raise ArgumentError(f"{command.row.word.decode()} cannot have REQ")
        digest, body = digest_of(words), command.row.body
        command.number, command.digest = number, digest
        if body is JOBS:
            if command.length is not None and command.length > NUMBERED_BATCH_JOBS_MAX:
                command.answer = bad_arguments(_TOO_MANY)       # refused after it has been read completely
        elif command.length is None or body is SNAPSHOT:
            command.digest = digest.digest()
            if _jobs(command.operation) > NUMBERED_BATCH_JOBS_MAX:
                raise ArgumentError(_TOO_MANY)
        return command

    def body_length(self, words: Words) -> int | None:
        """Return the length of the data after a malformed line: 0 if there are none, None if unknown."""
        first = 0
        while first + 2 < len(words) and words[first].upper() == REQ:
            first += 1 if self._has_body(words[first + 1].upper()) else 2       # the number may be missing
        words = words[first:] if first else words
        family = self._of_two_words.get(words[0].upper())
        if family is not None and len(words) > 1 and words[1] in family:
            words = words[1:]
            return family[words[0]][0].body.length(words)
        rows = self._of_one_word.get(words[0].upper())
        return 0 if rows is None else rows[0].body.length(words)

    def _has_body(self, verb: bytes) -> bool:
        if verb in self._of_two_words:
            return any(rows[0].body is not NO_BODY for rows in self._of_two_words[verb].values())
        return verb == REQ or (verb in self._of_one_word and self._of_one_word[verb][0].body is not NO_BODY)


def _jobs(operation: object) -> int:
    """Return how many jobs the answer can contain; an answer with a time, as for TOUCH, counts twice."""
    if isinstance(operation, GetWith):
        return operation.count or 1
    if isinstance(operation, Touch):
        return 1 if isinstance(operation.ids, int) else 2 * len(operation.ids)
    return len(operation.ids) if isinstance(operation, End) and isinstance(operation.ids, tuple) else 1
