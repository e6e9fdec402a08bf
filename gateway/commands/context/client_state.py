"""The state of a client's connection: session, transaction, policy, and a snapshot being uploaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sockpqd.core import Policy
from sockpqd.gateway.commands.context.hand_outs import HandOuts
from sockpqd.gateway.commands.context.transaction import Transaction
from sockpqd.gateway.link import Link
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.round_robin import RoundRobin

Run = Callable[[Any, Command], None]        # executes a command for a client
# Decides how a command is run in this mode; None: it waits until all earlier commands are answered, and ends the mode.
Mode = Callable[[Command], Run | None]


class Attachment(Protocol):
    """The session of a connection; see sessions.py."""

    number: int

    def leave(self) -> None:
        """Detach the connection from the session."""


class Subscribed(Protocol):
    """The subscription of a connection; see events.py."""

    held_bytes: int             # the memory that it takes, about

    def cancel(self) -> None:
        """End the subscription; the client gets no more events."""


class Upload(Protocol):
    """A CLONE whose data are arriving; see clone.py."""

    def add(self, data: bytes, last: bool) -> None:
        """Take the next bytes of the snapshot; with `last` it is complete."""

    def cancel(self) -> None:
        """Abandon the upload: the client is gone."""


class ClientState:
    """The state of one connection.

    `trial`: the mode of a client that is admitted only as an administrator; otherwise None.
    """

    __slots__ = (
        "_link", "attached", "clone", "gathered_bytes", "hand_outs", "mode", "parts_bytes", "policy", "round_robin",
        "subscribed", "transaction", "trial", "turning",
    )

    def __init__(self, link: Link, trial: Mode | None) -> None:
        self.attached: Attachment | None = None         # the session of the connection
        self.transaction: Transaction | None = None     # between BEGIN and COMMIT
        self.parts_bytes = 0                            # of a command in parts: those that are not proposed yet
        self.gathered_bytes = 0                         # of what a long answer is made from, while it is made
        self.trial = trial                              # until it is decided
        self.mode = trial                               # overrides how the rows of commands say to run them
        self.clone: Upload | None = None                # the CLONE whose data are arriving
        self.policy: Policy | None = None               # of this connection (POLICY)
        self.subscribed: Subscribed | None = None       # what it hears of events
        self.round_robin: RoundRobin | None = None       # its turns among queues
        self.hand_outs: HandOuts | None = None          # the jobs that it was handed, if any
        self.turning = False        # a command in flight may change what the next GET depends on: turns, policy
        self._link = link

    def attach(self, attached: Attachment | None) -> None:
        """Attach the connection to this session, or to none."""
        if self.attached is not None:
            self.attached.leave()
        self.attached = attached

    def subscribe(self, subscribed: Subscribed | None, mode: Mode | None) -> None:
        """Set the subscription, None for none; `mode` decides how commands are run while it lasts."""
        before, self.subscribed = self.subscribed, subscribed
        if before is not None:
            before.cancel()
        self.mode = mode

    def enter_transaction(self, mode: Mode, transaction: Transaction | None) -> None:
        """Start a transaction: until it is left, `mode` decides how commands are run."""
        self.mode, self.transaction = mode, transaction

    def leave_transaction(self) -> Transaction | None:
        """End the transaction and return it."""
        self.mode = None
        transaction, self.transaction = self.transaction, None
        return transaction

    def end_trial(self) -> None:
        """End the trial: the client is an administrator."""
        self.trial = self.mode = None
        self._link.end_trial()

    def close(self) -> None:
        """Release everything when the connection is closed."""
        self.transaction = self.hand_outs = self.round_robin = None
        self.attach(None)
        self.subscribe(None, self.trial)
        if self.clone is not None:
            self.clone.cancel()
            self.clone = None
