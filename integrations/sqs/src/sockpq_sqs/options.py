"""Options of the engine: the section [sqs] of the settings file."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

DEFAULT_ACCOUNT = "000000000000"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Choices in the behaviour of the service.

    `once`: an SDK that repeats SendMessage because an answer was lost sends the message once, in standard queues too.
    `policies` and `encryption`: policies of queues, and keys of KMS, are kept and shown and have no effect; "refuse"
    makes requests with them fail with UnsupportedOperation. `account`: the one of senders that have none of their own;
    `accounts`: for each account the beginning of its queues' names in the cluster, nothing for `account` if it is not
    among them. Other accounts have no queues.
    """

    once: bool = False
    policies: Literal["keep", "refuse"] = "keep"
    encryption: Literal["keep", "refuse"] = "keep"
    account: str = DEFAULT_ACCOUNT
    accounts: dict[str, str] = {}
