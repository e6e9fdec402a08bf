"""Parses the words of a line: names, numbers, seconds (PROTOCOL "Lines, data, values"), sessions, nodes, users."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache

from sockpqd.core import HEADER_NAME_BYTES_MAX
from sockpqd.gateway.limits import KEY_BYTES_MAX, KEY_BYTES_MIN, QUEUES_MAX
from sockpqd.gateway.protocol.reasons import shown

UNSIGNED_MAX = 2**64 - 1
SIGNED_MIN, SIGNED_MAX = -(2**63), 2**63 - 1
EXPIRE_MS_MAX = 4_294_967_295_000           # 136 years, as beanstalkd has; anything more is a mistake
UNIX_MS_MAX = 2**62                         # beyond any real time, with headroom for additions within 64 bits

NAME_BYTES_MAX = 255
NAME = rb"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}"
_NAME = re.compile(NAME)
_NAMES = re.compile(rb"%(name)s+(?:\|%(name)s+)*+" % {b"name": NAME})
_JOB_KEY = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")
_HEADER_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,%d}" % HEADER_NAME_BYTES_MAX)
_WORD = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
_SECONDS = re.compile(rb"([0-9]+)(?:\.([0-9]+))?")

NODE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_SESSION = re.compile(rb"([1-9][0-9]*)_([0-9a-f]{16})")
_ROUTING_KEY = re.compile(rb"[A-Za-z0-9_.:@-]{1,255}")
_PATTERN = re.compile(rb"[A-Za-z0-9_.:@#*-]{1,255}")
_WORKER = re.compile(rb"[A-Za-z0-9_.:@-]{1,64}")
_USER = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_KEY = re.compile(rb"(?:[0-9A-Fa-f]{2}){%d,%d}" % (KEY_BYTES_MIN, KEY_BYTES_MAX))
_IPV4 = re.compile(r"[0-9.]+")


# What a word at a certain position must be: used as subjects of error messages.
JOB_ID = "the id of a job must be"
JOB_NUMBER = "the number of a job must be"
PLACE = "the place of a job must be"
LENGTH = "the length must be"
PRIORITY = "the priority must be"


class ArgumentError(Exception):
    """The words after the verb do not match the command's grammar. `reason` says what is expected, as in the answer."""

    @property
    def reason(self) -> str:
        """A short sentence of printable ASCII."""
        return str(self.args[0])


class WrongWord(ArgumentError):
    """A word is not of the expected kind, `wanted`.

    `word` is shown in the reason; None for secrets. `subject` begins it: "DELAY wants", "the length must be".
    """

    def __init__(self, wanted: str, word: bytes | None, subject: str | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.word = word
        self.subject = subject

    @property
    def reason(self) -> str:
        """The text, formatted only on request, as some callers try another form of the line instead."""
        ending = "" if self.word is None else f", not {shown(self.word)}"
        return f"{self.subject or 'expected'} {self.wanted}{ending}"


@lru_cache(maxsize=8192)        # the same few names recur, and sharing one string object each saves memory
def name(word: bytes) -> str:
    """Parse a queue or item name."""
    if _NAME.fullmatch(word) is None:
        raise _wrong_name(word)
    return word.decode("ascii")


def _wrong_name(word: bytes) -> WrongWord:
    if len(word) > NAME_BYTES_MAX:
        return WrongWord(f"a name of at most {NAME_BYTES_MAX} characters", word)
    if word[:1] in (b":", b"@", b"-"):
        return WrongWord("a name that does not begin with : @ -", word)
    return WrongWord("a name of A-Z a-z 0-9 _ . + / ; $ ( ) : @ -", word)


def key(word: bytes) -> str:
    """Return a job key. Raises ArgumentError."""
    if _JOB_KEY.fullmatch(word) is None:
        raise WrongWord("a key of 1 to 128 of A-Z a-z 0-9 _ . : -", word)
    return word.decode("ascii")


def plain_word(word: bytes) -> str:
    """Parse a free-form word meant for people, such as a reason."""
    if _WORD.fullmatch(word) is None:
        raise WrongWord("a word of 1 to 64 of A-Z a-z 0-9 _ . : -", word)
    return word.decode("ascii")


def header_name(word: bytes) -> str:
    """Parse the name of a header of a job."""
    if _HEADER_NAME.fullmatch(word) is None:
        raise WrongWord("the name of a header, 1 to 64 of A-Z a-z 0-9 _ . -", word)
    return word.decode("ascii")


def routing_key(word: bytes) -> str:
    """Parse the routing key of a job put to a topic."""
    if _ROUTING_KEY.fullmatch(word) is None:
        raise WrongWord("a routing key of 1 to 255 of A-Z a-z 0-9 _ . : @ -", word)
    return word.decode("ascii")


def pattern(word: bytes) -> str:
    """Parse a pattern of routing keys: words with dots between them, where `*` is any word and `#` any number."""
    if _PATTERN.fullmatch(word) is None:
        raise WrongWord("a pattern of 1 to 255 of A-Z a-z 0-9 _ . : @ - # *", word)
    return word.decode("ascii")


def worker(word: bytes) -> str:
    """Parse the name of a pool of workers."""
    if _WORKER.fullmatch(word) is None:
        raise WrongWord("the name of a worker, 1 to 64 of A-Z a-z 0-9 _ . : @ -", word)
    return word.decode("ascii")


def prefix(word: bytes) -> str:
    """Parse a name prefix like `mail*`; `*` alone matches any name."""
    if not word.endswith(b"*"):
        raise WrongWord("a prefix like mail*", word)
    return name(word[:-1]) if len(word) > 1 else ""


@lru_cache(maxsize=8192)
def _one_queue(word: bytes) -> tuple[str, ...]:
    return (name(word),)


def queues(word: bytes) -> tuple[str, ...]:
    """Parse queue names like `a|b|c`, dropping duplicates and keeping their order."""
    if b"|" not in word:
        return _one_queue(word)
    if _NAMES.fullmatch(word) is None:          # one match for all: a line can hold thousands
        raise WrongWord("names like mail|print", word)
    names = tuple(dict.fromkeys(word.decode("ascii").split("|")))
    if len(names) > QUEUES_MAX:
        raise ArgumentError(f"more than {QUEUES_MAX} names")
    return names


def unsigned(word: bytes, subject: str | None = None) -> int:
    """Parse an unsigned decimal number of at most 64 bits; `subject` begins the reason of an error."""
    if not word.isdigit():
        raise WrongWord("a number", word, subject)
    if len(word) > 19:
        number = _within(word, 0, UNSIGNED_MAX)
        if number is None:
            raise WrongWord("a number of at most 64 bits", word, subject)
        return number
    return int(word)


def between(lowest: int, highest: int) -> Callable[[bytes], int]:
    """Return a parser of unsigned decimal numbers between these limits, inclusive."""
    wanted = f"a number from {lowest} to {highest}"

    def read(word: bytes) -> int:
        if word.isdigit():
            number = int(word) if len(word) <= 18 else _within(word, lowest, highest)
            if number is not None and lowest <= number <= highest:
                return number
        raise WrongWord(wanted, word)
    return read


_port = between(1, 65535)


def signed(word: bytes, subject: str | None = None) -> int:
    """Parse a 64-bit decimal number with an optional sign; `subject` begins the reason of an error."""
    if word.isdigit() and len(word) <= 18:
        return int(word)
    number = _within(word, SIGNED_MIN, SIGNED_MAX)
    if number is None:
        raise WrongWord("an integer of 64 bits", word, subject)
    return number


def _within(word: bytes, lowest: int, highest: int) -> int | None:
    """Parse a number of any length; None if it is not a number or outside these limits.

    Leading zeros are allowed, but int() would raise for thousands of digits.
    """
    sign, digits = (word[:1], word[1:]) if word[:1] in (b"-", b"+") else (b"", word)
    if not digits.isdigit():
        return None
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > 20:
        return None
    number = int(sign + digits)
    return number if lowest <= number <= highest else None


def milliseconds(word: bytes) -> int:
    """Parse seconds with an optional decimal fraction into milliseconds, rounded up."""
    if word.isdigit() and len(word) <= 9:
        return int(word) * 1000
    number_ms = _decimal_ms(word, EXPIRE_MS_MAX)
    if number_ms is None:
        raise WrongWord(f"at most {EXPIRE_MS_MAX // 1000} seconds" if _SECONDS.fullmatch(word) else "seconds", word)
    return number_ms


def positive_ms(word: bytes) -> int:
    """Parse seconds like `milliseconds`, but greater than 0."""
    number_ms = milliseconds(word)
    if number_ms == 0:
        raise WrongWord("more than 0 seconds", word)
    return number_ms


def unix_ms(word: bytes) -> int:
    """Parse Unix time in seconds with an optional decimal fraction into milliseconds, rounded up."""
    number_ms = _decimal_ms(word, UNIX_MS_MAX)
    if number_ms is None:
        raise WrongWord("a Unix time in seconds", word)
    return number_ms


def _decimal_ms(word: bytes, highest_ms: int) -> int | None:
    """Parse seconds with a decimal fraction into milliseconds; None if malformed or above the limit."""
    match = _SECONDS.fullmatch(word)
    if match is None or (whole := _within(match.group(1), 0, UNSIGNED_MAX)) is None:
        return None
    fraction = match.group(2) or b""
    number_ms = whole * 1000 + int(fraction[:3].ljust(3, b"0"))
    if fraction[3:].strip(b"0"):
        number_ms += 1
    return number_ms if number_ms <= highest_ms else None


def session(word: bytes) -> tuple[int, int]:
    """Parse a session id into its number and secret."""
    match = _SESSION.fullmatch(word)
    number = None if match is None else _within(match.group(1), 1, UNSIGNED_MAX)
    if match is None or number is None:
        raise WrongWord("the id of a session, as SESSION returned it", None)
    return number, int(match.group(2), 16)


def node(word: bytes) -> str:
    """Return a node name. Raises ArgumentError."""
    if NODE_NAME.fullmatch(text := _text(word)) is None:
        raise WrongWord("the name of a node, 1 to 64 of A-Z a-z 0-9 _ . -", word)
    return text


def user_name(word: bytes) -> str:
    """Return a user name. Raises ArgumentError."""
    if _USER.fullmatch(text := _text(word)) is None:
        raise WrongWord("the name of a user, 1 to 64 of A-Z a-z 0-9 _ . : -", word)
    return text


def secret(word: bytes) -> str:
    """Parse a user's secret: any word in UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise WrongWord("a secret in UTF-8", None) from None


def secret_key(word: bytes) -> bytes:
    """Parse a user's key from hexadecimal digits."""
    if _KEY.fullmatch(word) is None:
        raise WrongWord(f"a key of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes in hexadecimal digits", None)
    return bytes.fromhex(word.decode("ascii"))


def address(host: bytes, port: bytes) -> str:
    """Join an IP address or host name and a port to "host:port", with brackets around an IPv6 address."""
    number = _port(port)
    text = _text(host)
    try:
        if ":" in text:
            return f"[{_ipv6(text)}]:{number}"
        if _IPV4.fullmatch(text):
            ipaddress.IPv4Address(text)
    except ValueError:
        raise WrongWord("an IP address", host) from None
    if _HOST.fullmatch(text) is None:
        raise WrongWord("an IP address or the name of a host", host)
    return f"{text}:{number}"


def _ipv6(text: str) -> ipaddress.IPv6Address:
    """Parse an IPv6 address without a zone (`%eth0`), which would be meaningful on one host only."""
    parsed = ipaddress.IPv6Address(text)
    if parsed.scope_id is not None:
        raise ValueError("a zone")
    return parsed


def _text(word: bytes) -> str:
    """Decode a word; bytes that are not ASCII become a character that none of the expressions above accepts."""
    return word.decode("ascii", "replace")
