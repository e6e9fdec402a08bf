"""The configuration of a node: one TOML file, overridden by the environment, validated before anything starts."""

from gateway.config.addresses import split_address
from gateway.config.errors import ConfigError
from gateway.config.reading import load, read
from gateway.config.sections import (
    Auth,
    Beanstalkd,
    Config,
    GatewaySection,
    LegacyListen,
    Listen,
    Log,
    Node,
    Queue,
    Raft,
    Tls,
)

__all__ = [
    "Auth", "Beanstalkd", "Config", "ConfigError", "GatewaySection", "LegacyListen", "Listen", "Log", "Node", "Queue",
    "Raft", "Tls",
    "load", "read", "split_address",
]
