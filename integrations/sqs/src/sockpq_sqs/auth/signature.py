"""The signature that a request has, as it was sent: in the header Authorization, or in the URL (presigned)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from msgspec import Struct

from sockpq_sqs.auth.canonical import ALGORITHM, PRESIGNED
from sockpq_sqs.auth.head import Head
from sockpq_sqs.auth.refusals import incomplete, not_now, unknown_key, unsigned

SERVICE = "sqs"
END = "aws4_request"
TIME = "%Y%m%dT%H%M%SZ"
SKEW_S = 900                    # between the clocks of a client and of this machine
EXPIRES_MAX_S = 7 * 86_400      # of a presigned URL

_FIELD = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
_FIELDS = ("Credential", "SignedHeaders", "Signature")
_IN_URL = ("X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Date", "X-Amz-Expires", PRESIGNED)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_REGION = re.compile(r"[a-z0-9-]{1,32}")


class Signature(Struct, frozen=True):
    """A signature: who signed, when (`stamp` is like 20261130T052500Z), for which region, and which headers."""

    access_key: str
    region: str
    headers: tuple[str, ...]
    digest: str
    stamp: str
    time: datetime
    expires_s: int | None = None        # of a presigned URL

    @property
    def day(self) -> str:
        """The day of the key that signed, as 20261130."""
        return self.stamp[:8]

    @property
    def scope(self) -> str:
        """The scope of the key that signed."""
        return f"{self.day}/{self.region}/{SERVICE}/{END}"

    def check_time(self, now: datetime) -> None:
        """Refuse a signature of another time; raises SqsError."""
        age_s = (now - self.time).total_seconds()
        if age_s < -SKEW_S:
            raise not_now(f"Signature not yet current: {self.stamp} is still later than {now:{TIME}} + 15 min.")
        if age_s > (SKEW_S if self.expires_s is None else self.expires_s):
            raise not_now(f"Signature expired: {self.stamp} is too long before {now:{TIME}}.")


def signature_of(head: Head) -> Signature:
    """Parse the signature of a request; raises SqsError without one, and for one that is incomplete."""
    if head.headers.get("X-Amz-Security-Token") is not None:
        raise unknown_key()                     # there are no temporary credentials here
    given = head.header("Authorization")
    if given:
        return _of_header(head, given)
    parameters = url_parameters(head.query)
    if PRESIGNED in parameters:
        return _of_url(parameters)
    raise unsigned()


def url_parameters(query: str) -> dict[str, str]:
    """Return the parameters of a signature in a URL; X-Amz-Date, for example."""
    if "X-Amz-" not in query:
        return {}
    pairs = (pair.partition("=") for pair in query.split("&") if pair.startswith("X-Amz-"))
    return {name: unquote(value) for name, _, value in pairs}


def _of_header(head: Head, given: str) -> Signature:
    algorithm, _, rest = given.partition(" ")
    if algorithm != ALGORITHM:
        raise incomplete(f"Authorization header requires {ALGORITHM}.")
    found: dict[str, str] = dict(_FIELD.findall(rest))
    for name in _FIELDS:
        if name not in found:
            raise incomplete(f"Authorization header requires '{name}' parameter.")
    headers = tuple(found["SignedHeaders"].lower().split(";"))
    stamp = head.header("X-Amz-Date")
    try:
        time = _time(stamp) if stamp else parsedate_to_datetime(head.header("Date")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise incomplete("Authorization header requires existence of a 'X-Amz-Date' or a 'Date' header.") from None
    wanted = ["host", "x-amz-date" if stamp else "date"]
    wanted += [name for name in ("x-amz-target", "x-amz-content-sha256") if name in head.headers]
    _check_signed(headers, wanted)
    stamp = stamp or f"{time:{TIME}}"
    access_key, region = _credential(found["Credential"], stamp)
    return Signature(access_key, region, headers, _digest(found["Signature"]), stamp, time)


def _of_url(parameters: dict[str, str]) -> Signature:
    if "X-Amz-Security-Token" in parameters:
        raise unknown_key()
    for name in _IN_URL:
        if name not in parameters:
            raise incomplete(f"AWS query-string parameters must include '{name}'.")
    if parameters.get("X-Amz-Algorithm") != ALGORITHM:
        raise incomplete(f"'X-Amz-Algorithm' must be {ALGORITHM}.")
    expires = parameters["X-Amz-Expires"]
    if not (expires.isascii() and expires.isdecimal()) or len(expires) > 6 or int(expires) > EXPIRES_MAX_S:
        raise incomplete(f"'X-Amz-Expires' must be a number of seconds up to {EXPIRES_MAX_S}.")
    try:
        time = _time(parameters["X-Amz-Date"])
    except ValueError:
        raise incomplete("'X-Amz-Date' must be in ISO-8601 'basic format'.") from None
    headers = tuple(parameters["X-Amz-SignedHeaders"].lower().split(";"))
    _check_signed(headers, ["host"])
    access_key, region = _credential(parameters["X-Amz-Credential"], parameters["X-Amz-Date"])
    digest = _digest(parameters[PRESIGNED])
    return Signature(access_key, region, headers, digest, parameters["X-Amz-Date"], time, int(expires))


def _credential(given: str, stamp: str) -> tuple[str, str]:
    """Return the access key and the region of a credential, which must be of the same day; raises SqsError."""
    parts = given.rsplit("/", 4)
    if len(parts) != 5 or not parts[0]:
        raise incomplete("Credential must have the form KEY/DAY/REGION/SERVICE/aws4_request.")
    access_key, day, region, service, end = parts
    if service != SERVICE or end != END:
        raise incomplete(f"Credential should be scoped to correct service: '{SERVICE}'.")
    if not _REGION.fullmatch(region):
        raise incomplete("Credential should be scoped to a valid region.")
    if day != stamp[:8]:
        raise incomplete("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date.")
    return access_key, region


def _check_signed(headers: tuple[str, ...], wanted: list[str]) -> None:
    for name in wanted:
        if name not in headers:
            raise incomplete(f"'{name}' must be a 'SignedHeader' in the AWS Authorization.")


def _digest(given: str) -> str:
    if not _DIGEST.fullmatch(given):
        raise incomplete("The signature must be 64 hexadecimal digits.")
    return given


def _time(stamp: str) -> datetime:
    """Parse a time like 20261130T052500Z; raises ValueError."""
    if not _STAMP.fullmatch(stamp):
        raise ValueError
    return datetime.fromisoformat(stamp)
