"""The configuration of a node: one TOML file, overridden by the environment, validated before anything starts."""

from sockpqd.gateway.config.addresses import split_address
from sockpqd.gateway.config.errors import ConfigError
from sockpqd.gateway.config.reading import load, read
from sockpqd.gateway.config.sections import (
    Auth,
    BeanstalkdSection,
    Config,
    FeedSection,
    GatewaySection,
    LegacyListen,
    Listen,
    Log,
    Node,
    QueueSection,
    Raft,
    ReplicaSection,
    Tls,
)

__all__ = [
    "Auth", "BeanstalkdSection", "Config", "ConfigError", "FeedSection", "GatewaySection", "LegacyListen", "Listen",
    "Log", "Node", "QueueSection", "Raft", "ReplicaSection", "Tls",
    "load", "read", "split_address",
]
