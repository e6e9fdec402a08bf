"""The dashboard: pages about the cluster and its queues at the HTTP port, and actions on them.

`markup` makes HTML, `visitor` knows who asks, `pages` show, `actions` are what can be done, `commands` executes them as
commands of the protocol, so that rights and answers are the same, `live` tells browsers of changes, `site` is the way
in. Pages are made from the applied state of this node, in pieces that hold the loop for a few milliseconds at most. May
use everything but dev, daemon and main.
"""

from sockpqd.gateway.dashboard.commands import execute
from sockpqd.gateway.dashboard.site import Dashboard

__all__ = ["Dashboard", "execute"]
