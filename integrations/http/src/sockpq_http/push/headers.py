"""The headers of a request, from its job and its target."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sockpq.aio import Job

from sockpq_http._version import __version__

AGENT = f"sockpq-http/{__version__} (push)"
OWN = ("sockpq-", "webhook-")
# Of the connection or the message, which are this program's; a job cannot set them.
RESERVED = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "expect", "host", "keep-alive", "te",
    "trailer", "transfer-encoding", "upgrade", "user-agent",
})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def is_name(text: str) -> bool:
    """Return whether this can be the name of a header (RFC 9110, section 5.1)."""
    return _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Return whether this can be the value of a header: no line ends, no control characters."""
    return _VALUE.fullmatch(text) is not None


def is_reserved(name: str) -> bool:
    """Return whether only this program sets the header."""
    lower = name.lower()
    return lower in RESERVED or lower.startswith(OWN) or lower.startswith("proxy-")


def message_id(job: Job) -> str:
    """Return the id of the message, the same for each attempt if the job has a number, else one for each hand-out."""
    return f"try_{job.id}" if job.meta is None or job.meta.number is None else f"job_{job.meta.number}"


def request_headers(job: Job, fixed: Mapping[str, str], content_type: str) -> dict[str, str]:
    """Return the headers of a job's request, by names in lower case; `fixed`: the headers of the target.

    Headers of the job that HTTP cannot carry, or that are not its own to set, are left out. The target's replace
    the job's: a job cannot forge its `authorization`, for example.
    """
    headers = {"content-type": content_type, "accept-encoding": "identity", "user-agent": AGENT}
    for name, value in job.headers.items():
        if is_name(name) and is_value(value) and not is_reserved(name):
            headers[name.lower()] = value.strip()
    headers.update({name.lower(): value for name, value in fixed.items()})
    headers["sockpq-id"] = str(job.id)
    headers["sockpq-queue"] = job.queue
    if job.item is not None:
        headers["sockpq-item"] = job.item
    if (meta := job.meta) is not None:
        headers["sockpq-try"] = str(meta.attempt)
        if meta.number is not None:
            headers["sockpq-number"] = str(meta.number)
        if meta.key is not None:
            headers["sockpq-key"] = meta.key
        if meta.group is not None:
            headers["sockpq-group"] = meta.group
    return headers
