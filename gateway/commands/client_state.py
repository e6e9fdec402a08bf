"""What a client has set up on its connection: session, transaction, policy, a snapshot on its way here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from core import Policy
from gateway.commands.transaction import Transaction
from gateway.link import Link
from gateway.protocol.command import Command
from gateway.waiting.rotation import Rotation

Run = Callable[[Any, Command], None]        # what a command does for a client
# What is done with a command for now; None: it is executed when everything before it is answered, and ends the mode.
Mode = Callable[[Command], Run | None]


class Attachment(Protocol):
    """The session of a connection; see sessions.py."""

    number: int

    def leave(self) -> None:
        """The connection is not attached any more."""


class Upload(Protocol):
    """A CLONE whose data arrive; see clone.py."""

    def add(self, data: bytes, last: bool) -> None:
        """The next bytes."""

    def cancel(self) -> None:
        """The client has gone."""


class ClientState:
    """`trial`: what is done with the commands of a client that is only let in if it is an administrator."""

    __slots__ = ("_link", "attached", "clone", "mode", "policy", "rotation", "transaction", "trial")

    def __init__(self, link: Link, trial: Mode | None) -> None:
        self.attached: Attachment | None = None         # the session of the connection
        self.transaction: Transaction | None = None     # between BEGIN and COMMIT
        self.trial = trial                              # until it is decided
        self.mode = trial                               # what is done with commands for now, if not what their rows say
        self.clone: Upload | None = None                # the CLONE whose data arrive
        self.policy: Policy | None = None               # of this connection (POLICY)
        self.rotation: Rotation | None = None           # of queues among which it took turns
        self._link = link

    def attach(self, attached: Attachment | None) -> None:
        """This is the session of the connection from now on."""
        if self.attached is not None:
            self.attached.leave()
        self.attached = attached

    def enter_transaction(self, mode: Mode, transaction: Transaction | None) -> None:
        """Until it is left `mode` says what is done with commands."""
        self.mode, self.transaction = mode, transaction

    def leave_transaction(self) -> Transaction | None:
        """The transaction is over; returns it."""
        self.mode = None
        transaction, self.transaction = self.transaction, None
        return transaction

    def end_trial(self) -> None:
        """The client is an administrator."""
        self.trial = self.mode = None
        self._link.end_trial()

    def close(self) -> None:
        """The client has gone."""
        self.transaction = None
        self.attach(None)
        if self.clone is not None:
            self.clone.cancel()
            self.clone = None
