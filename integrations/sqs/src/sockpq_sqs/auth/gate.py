"""Identifies the sender of a request: a user of the users file, or anybody where there is no such file."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from sockpq_sqs.auth.clients import Clients
from sockpq_sqs.auth.head import Head
from sockpq_sqs.auth.refusals import foreign_page
from sockpq_sqs.auth.users import Users
from sockpq_sqs.auth.verifier import Claim, Verifier
from sockpq_sqs.call import User

# Browsers send at least one of these with requests of a page, and no SDK on a server does.
_OF_BROWSERS = ("Origin", "Sec-Fetch-Site")

_REGION = re.compile(r"Credential=[^,\s]*/[0-9]{8}/([a-z0-9-]{1,32})/")


class Sender(NamedTuple):
    """The sender of a request, with the account and the region."""

    user: User
    account: str
    region: str


class Gate(Protocol):
    """Lets requests in, in two steps: by the head before the body is read, and by the body."""

    def claim(self, head: Head) -> Claim | None:
        """Return the claimed sender of the request; raises SqsError if the claim cannot be true."""

    def sender(self, head: Head, claim: Claim | None, body: bytes) -> Sender:
        """Return the sender of the request; raises SqsError unless it is proved."""


class OpenGate:
    """Lets everybody in, and reads signatures only for the region. Requests of web pages are refused."""

    def __init__(self, clients: Clients, account: str, region: str) -> None:
        self._user = User(None, clients.own)
        self._account = account
        self._region = region

    def claim(self, head: Head) -> None:
        """See Gate."""
        if any(name in head.headers for name in _OF_BROWSERS):
            raise foreign_page()

    def sender(self, head: Head, claim: Claim | None, body: bytes) -> Sender:
        """See Gate."""
        match = _REGION.search(head.header("Authorization"))
        return Sender(self._user, self._account, match[1] if match else self._region)


class UsersGate:
    """Admits the users of a file. With `in_cluster` each acts as the user of that name there, else all act as one.

    `account`: the account of users for whom the file names none.
    """

    def __init__(
        self, users: Users, clients: Clients, verifier: Verifier, account: str, *, in_cluster: bool,
    ) -> None:
        self._users = users
        self._clients = clients
        self._verifier = verifier
        self._account = account
        self._in_cluster = in_cluster

    def claim(self, head: Head) -> Claim:
        """See Gate."""
        return self._verifier.claim(head)

    def sender(self, head: Head, claim: Claim | None, body: bytes) -> Sender:
        """See Gate. A user who was removed meanwhile is still served this once."""
        assert claim is not None
        self._verifier.verify(claim, body)
        name = claim.signature.access_key
        account = claim.user
        client = self._clients.of(name, account) if self._in_cluster else self._clients.own
        return Sender(User(name, client), account.account or self._account, claim.signature.region)
