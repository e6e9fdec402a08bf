"""The daemon's front end: the sockPQd text protocol over TCP, blocked clients, configuration, main."""

from gateway.limits import Limits
from gateway.server.hub import Hub
from gateway.server.server import Server

__all__ = ["Hub", "Limits", "Server"]
