"""The view of each server of the cluster, for operators' programs."""

# Made from _async/survey.py by client/tools/faces.py: edit there.

from __future__ import annotations

from collections.abc import Iterable

from sockpq._backends.access import Access, Tls
from sockpq._backends.sync import ThreadNetwork, run
from sockpq._engine.probe import ServerView, view_all
from sockpq._protocol.addresses import parse_servers
from sockpq._protocol.arguments import span

FAREWELL_S = 1.0        # how long it waits for the last bytes to leave


def survey(
    servers: str | Iterable[str],
    timeout: float = 0.5,
    *,
    tls: Tls = None,
    user: str | None = None,
    secret: str | None = None,
) -> list[ServerView]:
    """Ask every server in parallel within `timeout` seconds; returns their views in the order of `servers`.

    `tls`, `user` and `secret` as for Client. A server may take 1.5 s longer to refuse the secret. Raises BadArguments
    and TypeError for a bad list of servers, CA file or secret, and nothing else.
    """
    network = ThreadNetwork(Access(tls, user, secret))
    views = run(view_all(network, parse_servers(servers), span(timeout, "timeout")))
    run(network.drain(FAREWELL_S))
    return views
