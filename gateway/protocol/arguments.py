"""Parses the words of a line: names, numbers, seconds (PROTOCOL "Lines, data, values"), sessions, nodes, users."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache

from sockpqd.gateway.limits import KEY_BYTES_MAX, KEY_BYTES_MIN, QUEUES_MAX

UNSIGNED_MAX = 2**64 - 1
SIGNED_MIN, SIGNED_MAX = -(2**63), 2**63 - 1
EXPIRE_MS_MAX = 4_294_967_295_000           # 136 years, as beanstalkd has; anything more is a mistake
UNIX_MS_MAX = 2**62                         # beyond any real time, with headroom for additions within 64 bits

NAME = rb"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}"
_NAME = re.compile(NAME)
_NAMES = re.compile(rb"%(name)s+(?:\|%(name)s+)*+" % {b"name": NAME})
_JOB_KEY = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")
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


class ArgumentError(Exception):
    """The words after the verb do not match the command's grammar."""


@lru_cache(maxsize=8192)        # the same few names recur, and sharing one string object each saves memory
def name(word: bytes) -> str:
    """Parse a queue or item name."""
    if _NAME.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def key(word: bytes) -> str:
    """Parse a job key."""
    if _JOB_KEY.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def plain_word(word: bytes) -> str:
    """Parse a free-form word meant for people, such as a reason."""
    if _WORD.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def routing_key(word: bytes) -> str:
    """Parse the routing key of a job put to a topic."""
    if _ROUTING_KEY.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def pattern(word: bytes) -> str:
    """Parse a pattern of routing keys: words with dots between them, where `*` is any word and `#` any number."""
    if _PATTERN.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def worker(word: bytes) -> str:
    """Parse the name of a pool of workers."""
    if _WORKER.fullmatch(word) is None:
        raise ArgumentError
    return word.decode("ascii")


def prefix(word: bytes) -> str:
    """Parse a name prefix like `mail*`; `*` alone matches any name."""
    if not word.endswith(b"*"):
        raise ArgumentError
    return name(word[:-1]) if len(word) > 1 else ""


@lru_cache(maxsize=8192)
def _one_queue(word: bytes) -> tuple[str, ...]:
    return (name(word),)


def queues(word: bytes) -> tuple[str, ...]:
    """Parse queue names like `a|b|c`, dropping duplicates and keeping their order."""
    if b"|" not in word:
        return _one_queue(word)
    if _NAMES.fullmatch(word) is None:          # one match for all: a line can hold thousands
        raise ArgumentError
    names = tuple(dict.fromkeys(word.decode("ascii").split("|")))
    if len(names) > QUEUES_MAX:
        raise ArgumentError
    return names


def unsigned(word: bytes) -> int:
    """Parse an unsigned decimal number of at most 64 bits."""
    if not word.isdigit():
        raise ArgumentError
    if len(word) > 19:
        return _within(word, 0, UNSIGNED_MAX)
    return int(word)


def between(lowest: int, highest: int) -> Callable[[bytes], int]:
    """Return a parser of unsigned decimal numbers between these limits, inclusive."""
    def read(word: bytes) -> int:
        number = unsigned(word)
        if not lowest <= number <= highest:
            raise ArgumentError
        return number
    return read


def signed(word: bytes) -> int:
    """Parse a 64-bit decimal number with an optional sign."""
    if word.isdigit() and len(word) <= 18:
        return int(word)
    digits = word[1:] if word[:1] in (b"-", b"+") else word
    if not digits.isdigit():
        raise ArgumentError
    return _within(word, SIGNED_MIN, SIGNED_MAX)


def _within(word: bytes, lowest: int, highest: int) -> int:
    """Parse a number of any length; leading zeros are allowed, but int() would raise for thousands of digits."""
    sign, digits = (word[:1], word[1:]) if word[:1] in (b"-", b"+") else (b"", word)
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > 20:
        raise ArgumentError
    number = int(sign + digits)
    if not lowest <= number <= highest:
        raise ArgumentError
    return number


def milliseconds(word: bytes) -> int:
    """Parse seconds with an optional decimal fraction into milliseconds, rounded up."""
    if word.isdigit() and len(word) <= 9:
        return int(word) * 1000
    return _decimal_ms(word, EXPIRE_MS_MAX)


def positive_ms(word: bytes) -> int:
    """Parse seconds like `milliseconds`, but greater than 0."""
    number_ms = milliseconds(word)
    if number_ms == 0:
        raise ArgumentError
    return number_ms


def unix_ms(word: bytes) -> int:
    """Parse Unix time in seconds with an optional decimal fraction into milliseconds, rounded up."""
    return _decimal_ms(word, UNIX_MS_MAX)


def _decimal_ms(word: bytes, highest_ms: int) -> int:
    match = _SECONDS.fullmatch(word)
    if match is None:
        raise ArgumentError
    whole, fraction = match.group(1), match.group(2) or b""
    number_ms = _within(whole, 0, UNSIGNED_MAX) * 1000 + int(fraction[:3].ljust(3, b"0"))
    if fraction[3:].strip(b"0"):
        number_ms += 1
    if number_ms > highest_ms:
        raise ArgumentError
    return number_ms


def session(word: bytes) -> tuple[int, int]:
    """Parse a session id into its number and secret."""
    match = _SESSION.fullmatch(word)
    if match is None:
        raise ArgumentError
    return _within(match.group(1), 1, UNSIGNED_MAX), int(match.group(2), 16)


def node(word: bytes) -> str:
    """Parse a node name."""
    text = _ascii(word)
    if NODE_NAME.fullmatch(text) is None:
        raise ArgumentError
    return text


def user_name(word: bytes) -> str:
    """Parse a user name."""
    text = _ascii(word)
    if _USER.fullmatch(text) is None:
        raise ArgumentError
    return text


def secret(word: bytes) -> str:
    """Parse a user's secret: any word in UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise ArgumentError from None


def secret_key(word: bytes) -> bytes:
    """Parse a user's key from hexadecimal digits."""
    if _KEY.fullmatch(word) is None:
        raise ArgumentError
    return bytes.fromhex(word.decode("ascii"))


def address(host: bytes, port: bytes) -> str:
    """Join an IP address or host name and a port to "host:port", with brackets around an IPv6 address."""
    number = unsigned(port)
    if not 0 < number < 65536:
        raise ArgumentError
    text = _ascii(host)
    try:
        if ":" in text:
            return f"[{_ipv6(text)}]:{number}"
        if _IPV4.fullmatch(text):
            ipaddress.IPv4Address(text)
    except ValueError:
        raise ArgumentError from None
    if _HOST.fullmatch(text) is None:
        raise ArgumentError
    return f"{text}:{number}"


def _ipv6(text: str) -> ipaddress.IPv6Address:
    """Parse an IPv6 address without a zone (`%eth0`), which would be meaningful on one host only."""
    parsed = ipaddress.IPv6Address(text)
    if parsed.scope_id is not None:
        raise ArgumentError
    return parsed


def _ascii(word: bytes) -> str:
    try:
        return word.decode("ascii")
    except UnicodeDecodeError:
        raise ArgumentError from None
