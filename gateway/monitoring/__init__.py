"""Monitoring of a node over HTTP: /healthz, /readyz, /metrics and /events."""

from sockpqd.gateway.monitoring.basic_auth import HttpAccess
from sockpqd.gateway.monitoring.hosts import OwnHosts
from sockpqd.gateway.monitoring.http import HttpServer, start
from sockpqd.gateway.monitoring.loop_lag import LoopLag
from sockpqd.gateway.monitoring.metrics import Sources
from sockpqd.gateway.monitoring.pages import HttpPages

__all__ = ["HttpAccess", "HttpPages", "HttpServer", "LoopLag", "OwnHosts", "Sources", "start"]
