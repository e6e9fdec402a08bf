"""The dashboard: pages about the cluster and its queues at the HTTP port, and actions on them.

`markup` makes HTML, `visitor` identifies the user, `pages` are the pages, `actions` the actions, `commands` executes
these as commands of the protocol, so that rights and answers are the same, `job_filter` finds jobs, `background` acts
on all of them, `live` notifies browsers of changes, and `site` is the entry point. Pages are made from the applied
state of this node, in pieces that hold the loop for a few milliseconds at most. May use everything but dev, daemon and
main.
"""

from sockpqd.gateway.dashboard.commands import execute
from sockpqd.gateway.dashboard.site import Dashboard

__all__ = ["Dashboard", "execute"]
