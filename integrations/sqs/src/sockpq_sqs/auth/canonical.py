"""The canonical form of a request, over which signature version 4 is computed (AWS: "Create a signed AWS API request").

The path is encoded once more than it was sent, as for all services but S3, and normalised. Parameters are decoded and
encoded again, so that a signer and a proxy may have written them in other ways.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from urllib.parse import quote, unquote

from sockpq_sqs.auth.head import Head

ALGORITHM = "AWS4-HMAC-SHA256"
PRESIGNED = "X-Amz-Signature"

_UNRESERVED = "-_.~"            # besides letters and digits (RFC 3986)


def canonical_request(head: Head, signed_headers: Iterable[str], body_digest: str) -> bytes:
    """Return the canonical request; `body_digest`: SHA-256 of the body in hexadecimal, or the text signed in its place.

    Parameters are left out of it that cannot be signed: the signature itself.
    """
    names = tuple(signed_headers)
    lines = "".join(f"{name}:{_value(head, name)}\n" for name in names)
    text = (f"{head.method}\n{canonical_path(head.path)}\n{canonical_query(head.query)}\n{lines}\n"
            f"{';'.join(names)}\n{body_digest}")
    return text.encode("utf-8", "surrogateescape")


def string_to_sign(time: str, scope: str, canonical: bytes) -> bytes:
    """Return the text that is signed. `time`: as YYYYMMDDTHHMMSSZ; `scope`: day, region, service and its end."""
    return f"{ALGORITHM}\n{time}\n{scope}\n{hashlib.sha256(canonical).hexdigest()}".encode()


def canonical_path(path: str) -> str:
    """Return the path without empty and dotted segments, encoded."""
    if path in ("", "/"):
        return "/"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    end = "/" if path.endswith("/") and parts else ""
    return quote(f"/{'/'.join(parts)}{end}", safe=f"/{_UNRESERVED}", errors="surrogateescape")


def canonical_query(query: str) -> str:
    """Return the parameters, encoded and in the order of their names and values, without the signature."""
    if not query:
        return ""
    pairs = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if pair and name != PRESIGNED:
            pairs.append((_encoded(name), _encoded(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _encoded(quoted: str) -> str:
    """Encode a name or a value again. A plus sign is a space in a form, and is signed as one."""
    plain = unquote(quoted.replace("+", " "), errors="surrogateescape")
    return quote(plain, safe=_UNRESERVED, errors="surrogateescape")


def _value(head: Head, name: str) -> str:
    """Return the values of a header, each with single spaces and none around it."""
    return ",".join(" ".join(value.split()) for value in head.headers.getall(name, ()))
