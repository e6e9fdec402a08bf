"""sockpqd whose [tls] is for the connections between nodes only: an alteration (altered.py).

So the same clients work in clusters with TLS and without.
"""

from __future__ import annotations

from typing import Any

from sockpqd.gateway import daemon
from sockpqd.gateway.process.certificates import Certificates


class BetweenNodes(Certificates):
    """Certificates that no client sees."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.clients = None         # type: ignore[assignment]


def alter() -> None:
    """Limit [tls] of the program to connections between nodes."""
    assert daemon.Certificates is Certificates
    daemon.Certificates = BetweenNodes      # type: ignore[misc]
