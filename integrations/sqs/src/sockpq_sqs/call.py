"""The seam between the door and the engine: a request that has been read and verified, and who sent it."""

from __future__ import annotations

from msgspec import Struct
from sockpq.aio import Client


class User(Struct, frozen=True):
    """The sender of a request: its name in the cluster (None where no users are configured), and that user's client."""

    name: str | None
    client: Client


class Call(Struct, frozen=True):
    """One request for the engine.

    `request` is the decoded Struct of the action. `account` and `region` come from the signature, `origin` is what
    the URLs of queues begin with ("https://queues.example.com", without a slash at its end). `trace` is the header
    X-Amzn-Trace-Id of HTTP, `invocation` the id that an SDK repeats with each attempt (amz-sdk-invocation-id); both
    are empty if there is none.
    """

    action: str
    request: Struct
    user: User
    account: str
    region: str
    origin: str
    trace: str = ""
    invocation: str = ""
