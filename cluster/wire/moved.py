"""Tracks members that have moved: where to dial a node that no longer has its configured address.

Each node reports its address in its greetings. It is dialled there when no node with its name answers at the configured
address, which is tried first because a node may need another route. Only a greeting of a member of this cluster counts,
with TLS one whose certificate proves the name; and the node that is dialled has to prove the same.
"""

from __future__ import annotations

import logging
import re

import msgspec

from sockpqd.cluster.wire.messages import Hello

_HOST_AND_PORT = re.compile(r"[^\s/@]{1,253}:[1-9][0-9]{0,4}")

log = logging.getLogger("sockpqd.peers")


class Addresses:
    """The addresses at which a node may be dialled: the configured one, and the one that it last reported."""

    def __init__(self, name: str, configured: str) -> None:
        """`configured`: "host:port", "" if unknown."""
        self.reported = ""
        self._name = name
        self._configured = configured
        self._moved = False             # it was not found at the configured address last

    @property
    def present(self) -> str:
        """The address to dial now, "" if none is known."""
        return self.reported if self._moved or not self._configured else self._configured

    def hear(self, hello: Hello, mine: Hello) -> None:
        """Record what the node, whose greeting was accepted, reports about itself; `mine`: our greeting."""
        ours = bool(hello.cluster_id) and hello.cluster_id == mine.cluster_id
        if ours and hello.address != mine.address and _HOST_AND_PORT.fullmatch(hello.address):
            self.reported = hello.address

    def believed(self, hello: Hello) -> Hello:
        """The greeting without an address for clients, unless the node has moved: they may need another route, too."""
        return hello if self._moved and self.reported == hello.address else msgspec.structs.replace(hello, client="")

    def missed(self) -> None:
        """Switch to the other address, if there is one, as no node with this name answered at the current one."""
        other = self._configured if self._moved else self.reported
        if other and other != self.present:
            self._moved = not self._moved

    def found(self) -> None:
        """Record that the node answered at the current address."""
        if self._moved and self.reported != self._configured:
            log.warning(
                "%s is at %s, not at %s as this node was configured: correct [[cluster.members]] when convenient",
                self._name, self.reported, self._configured)
