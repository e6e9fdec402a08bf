"""Commands that change a cluster: find its servers, give the word to the one that leads, say what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from sockpq import BadArguments, Client, NotExecuted, OutcomeUnknown, ServerView, Unavailable

from pqctl.cluster import ask, of_one_cluster, own_line

DONE, REFUSED, UNREACHABLE = 0, 1, 2

ASK_S = 0.6         # what a server has for telling who leads; those that are slower are asked last


class Servers:
    """The servers of one cluster that answer, the one that leads first."""

    def __init__(self, views: Sequence[ServerView]) -> None:
        self.views = sorted(views, key=_leadership, reverse=True)

    @property
    def addresses(self) -> list[str]:
        """Where they answer."""
        return [view.server for view in self.views]

    def name(self, server_id: int) -> str:
        """The node with this server id, in words."""
        for view in self.views:
            for line in view.nodes:
                if line.id == server_id:
                    return line.name
        return f"server {server_id}"

    def find(self, name: str | None) -> tuple[str, str]:
        """Name and address of this node, or of the one that leads. Raises Unavailable."""
        for view in self.views:
            line = own_line(view)
            if line is not None and (line.role == "LEADER" if name is None else line.name == name):
                return line.name, view.server
        raise Unavailable("no server leads" if name is None else f"no server says that it is {name}")


def _leadership(view: ServerView) -> tuple[bool, int]:
    line = own_line(view)
    return (False, 0) if line is None else (line.role == "LEADER", line.term or 0)


def steer(given: Sequence[str], timeout: float, act: Callable[[Client, Servers], str]) -> int:
    """Let `act` give a command to the cluster these servers belong to, and print what it says; returns the exit code.

    `timeout` in seconds, for finding the leader and for its answer together.
    """
    views, count = ask(given, min(ASK_S, timeout))
    servers = Servers(of_one_cluster(views, count))
    if not servers.views:
        return _fail(UNREACHABLE, "; ".join(str(view.error) for view in views))
    with Client(servers.addresses, timeout=timeout) as client:
        try:
            print(act(client, servers))
        except OutcomeUnknown as error:
            return _fail(UNREACHABLE, f"nobody knows whether it was done; see `pqctl cluster status`: {error}")
        except Unavailable as error:
            return _fail(UNREACHABLE, str(error))
        except BadArguments:
            raise
        except NotExecuted as refusal:
            return _fail(REFUSED, f"refused: {refusal}")
    return DONE


def _fail(code: int, why: str) -> int:
    print(why, file=sys.stderr)
    return code
