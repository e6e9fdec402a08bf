"""The daemon's front end: the sockPQd text protocol over TCP, blocked clients, configuration, main."""

from gateway.hub import Hub
from gateway.limits import Limits
from gateway.server import Server

__all__ = ["Hub", "Limits", "Server"]
