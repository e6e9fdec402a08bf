"""The connection of a replica to its origin: what the leader of a replica pulls, and gives to the mirror.

Uses the interface of cluster and the configuration, nothing of this node's own clients.
"""

from sockpqd.gateway.replica.puller import Phase, Puller, PullFigures
from sockpqd.gateway.replica.settings import OriginSettings, origin_settings, settings_at_start

__all__ = ["OriginSettings", "Phase", "PullFigures", "Puller", "origin_settings", "settings_at_start"]
