"""Names of queues: in the cluster, in URLs and in ARNs."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from sockpq_sqs.call import Call
from sockpq_sqs.model.errors import SqsError, invalid, no_queue
from sockpq_sqs.options import Options

NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
FIFO = ".fifo"
FIFO_NAME = re.compile(r"(?=.{6,80}\Z)[A-Za-z0-9_-]+\.fifo")
ARN = re.compile(r"arn:aws[a-z-]*:sqs:(?P<region>[^:]*):(?P<account>[^:]*):(?P<name>[^:]+)")

# URLs that are remembered; longer ones, and more of them, are parsed again each time: senders choose them.
URLS_MAX = 10_000
URL_CHARACTERS_MAX = 300


class QueueName(NamedTuple):
    """A queue: its account, the name that clients use, and its name in the cluster."""

    account: str
    name: str
    server: str

    @property
    def is_fifo(self) -> bool:
        """True if it keeps the order of messages: its name says so, and cannot change."""
        return self.name.endswith(FIFO)

    @property
    def prefix(self) -> str:
        """The beginning of the names of its account's queues in the cluster."""
        return self.server.removesuffix(self.name).removesuffix("+")

    def url(self, call: Call) -> str:
        """Return its URL for the sender of this request."""
        return f"{call.origin}/{self.account}/{self.name}"

    def arn(self, region: str) -> str:
        """Return its ARN. The region is the one that the request was signed for: queues are the same in all."""
        return f"arn:aws:sqs:{region}:{self.account}:{self.name}"


class Names:
    """Converts names by the accounts that are configured."""

    def __init__(self, options: Options) -> None:
        self._prefixes = {options.account: "", **options.accounts}
        self._known: dict[tuple[str, str], QueueName] = {}      # of URLs: to parse one costs as much as the rest

    def prefix(self, account: str) -> str:
        """Return the beginning of the names of this account's queues in the cluster. Raises SqsError."""
        found = self._prefixes.get(account)
        if found is None:
            raise no_queue()
        return found

    def queue(self, account: str, name: str) -> QueueName:
        """Return the queue of this account with this name. Raises SqsError."""
        server = f"+{name}" if name.startswith("-") else name       # no name in the cluster begins with `-`
        return QueueName(account, name, self.prefix(account) + server)

    def new(self, account: str, name: str, *, fifo: bool) -> QueueName:
        """Return the queue with this name, which must be one that queues may have. Raises SqsError."""
        if fifo and not FIFO_NAME.fullmatch(name):
            raise invalid(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end "
                "with .fifo suffix and be 1 to 80 in length."
            )
        if not fifo and not NAME.fullmatch(name):
            raise invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
        return self.queue(account, name)

    def of_url(self, call: Call, url: str) -> QueueName:
        """Return the queue of a URL, of which only the end of the path counts, or of a name. Raises SqsError.

        Proxies change hosts and ports, and SDKs use names as they use URLs.
        """
        known = self._known.get((call.account, url))
        if known:
            return known
        parts = urlsplit(url).path.rstrip("/").rsplit("/", 2) if "/" in url else [call.account, url]
        if len(parts) < 2 or not (NAME.fullmatch(parts[-1]) or FIFO_NAME.fullmatch(parts[-1])):
            if url.startswith(("http://", "https://")):
                raise no_queue()
            raise SqsError("InvalidAddress", f"The address {url[:300]} is not valid for this endpoint.", 404)
        found = self.queue(parts[-2] if parts[-2] in self._prefixes else call.account, parts[-1])
        if len(url) <= URL_CHARACTERS_MAX:
            if len(self._known) >= URLS_MAX:
                self._known.clear()
            self._known[(call.account, url)] = found
        return found

    def of_arn(self, arn: object) -> QueueName | None:
        """Return the queue of an ARN; None if no queue here can have it."""
        match = ARN.fullmatch(arn) if isinstance(arn, str) else None
        if not match or match["account"] not in self._prefixes:
            return None
        name = match["name"]
        if not (NAME.fullmatch(name) or FIFO_NAME.fullmatch(name)):
            return None
        return self.queue(match["account"], name)

    def of_server(self, account: str, server: str) -> QueueName:
        """Return the queue of this account with this name in the cluster."""
        prefix = self.prefix(account)
        name = server.removeprefix(prefix)
        return QueueName(account, name.removeprefix("+"), server)
