"""The two kinds of the option --all; actions/all_clusters.py, which executes it, is loaded only if it is given."""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.pqctl.invocation import Call


def each(call: Call, command: Callable[[Call], int]) -> int:
    """Run the command for each cluster of the map."""
    from sockpqd.pqctl.actions import all_clusters

    return all_clusters.run(call, command)


def each_and_sum(call: Call, command: Callable[[Call], int]) -> int:
    """Likewise, and add up the jobs that it counted."""
    from sockpqd.pqctl.actions import all_clusters
    from sockpqd.pqctl.actions.queues.counts import sum_of

    return all_clusters.run(call, command, sum_of)
