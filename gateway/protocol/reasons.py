"""Formats the reason behind `400 Bad Arguments`: the client's words in a safe form, and a suggestion.

Nothing here is called for a line that is accepted.
"""

from __future__ import annotations

from collections.abc import Collection

SHOWN_MAX = 40                  # characters shown of a word
_SUGGESTED_BYTES_MAX = 24       # no word of the protocol is longer, so nothing is compared with such a one
_ALL_BYTES_MAX = 110            # so that a reason has at most 180 bytes, as docs/PROTOCOL.md says


def shown(word: bytes) -> str:
    """Quote a client's word: at most `SHOWN_MAX` characters, all of them printable ASCII, then `..` if cut."""
    text = "".join(map(_character, word[:SHOWN_MAX + 1]))
    return f"'{text}'" if len(text) <= SHOWN_MAX else f"'{text[:SHOWN_MAX]}'.."


def _character(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}"


def suggestion(word: bytes, known: Collection[bytes]) -> str:
    """Return ` (KNOWN?)` for the known word that was probably meant, "" if there is none."""
    if len(word) > _SUGGESTED_BYTES_MAX:
        return ""
    upper = word.upper()
    found = upper if upper in known else next(
        (other for other in known if -2 < len(upper) - len(other) < 2 and _one_slip(upper, other)), None)
    if found is None:           # PRIORITY for PRI
        found = next((other for other in known if len(other) > 2 and upper.startswith(other)), None)
    return "" if found is None else f" ({found.decode('ascii')}?)"


def suggestion_or_all(word: bytes, known: Collection[bytes]) -> str:
    """Return the suggestion, or where there is none `; there are A, B and C`; "" if nothing is known."""
    found = suggestion(word, known)
    if found or not known:
        return found
    names = choice([one.decode("ascii") for one in known], "and")
    if len(names) > _ALL_BYTES_MAX:
        return "; HELP and the command show all"
    return f"; there {'is' if len(known) == 1 else 'are'} {names}"


def _one_slip(word: bytes, other: bytes) -> bool:
    """Return whether these words, whose lengths differ by one at most, differ by one letter or by two exchanged
    neighbours.
    """
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) < 2:
        return False
    same = 0
    while same < len(shorter) and shorter[same] == longer[same]:
        same += 1
    rest, other_rest = shorter[same:], longer[same:]
    if len(shorter) < len(longer):
        return rest == other_rest[1:]
    return rest[1:] == other_rest[1:] or (rest[1::-1] == other_rest[:2] and rest[2:] == other_rest[2:])


def choice(words: Collection[str], last_word: str = "or") -> str:
    """Format alternatives: `IN, OUT or ALL`."""
    *others, last = words
    return f"{', '.join(others)} {last_word} {last}" if others else last
