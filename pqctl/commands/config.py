"""`pqctl config`: the settings of the cluster."""

from __future__ import annotations

import click

from pqctl.invocation import Call, Seconds, command, given

POLICIES = ["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair"]
SWITCH = click.Choice(["on", "off"])


@command(None, "config", timeout=10.0)
@click.option("--expire-default", type=click.Choice(["later", "done"]),
              help="What happens to a job when its lease ends, by default.")
@click.option("--autocreate", type=SWITCH, help="Whether a PUT creates a queue that does not exist.")
@click.option("--policy", type=click.Choice(POLICIES), help="How a GET chooses among several queues.")
@click.option("--grace", type=Seconds(0), metavar="SECONDS", help="How much to extend leases after a failover.")
@click.option("--session-ttl", type=Seconds(1, 86400), metavar="SECONDS", help="The default TTL of sessions.")
@click.option("--fast-empty", type=SWITCH, help="Answer a GET that finds nothing without asking the other nodes.")
def config(
    call: Call, expire_default: str | None, autocreate: str | None, policy: str | None, grace: float | None,
    session_ttl: float | None, fast_empty: str | None,
) -> int:
    """Change settings of the cluster, and show all of them."""
    from pqctl.actions import queue_settings

    return queue_settings.cluster_config(call, given(
        expire_default=expire_default, autocreate=_on(autocreate), policy=policy, grace=grace,
        session_ttl=session_ttl, fast_empty=_on(fast_empty),
    ))


def _on(word: str | None) -> bool | None:
    return None if word is None else word == "on"
