"""Monitoring of a node over HTTP: /healthz, /readyz, /metrics and /events."""

from sockpqd.gateway.monitoring.basic_auth import Access
from sockpqd.gateway.monitoring.hosts import OwnHosts
from sockpqd.gateway.monitoring.http import HttpServer, start
from sockpqd.gateway.monitoring.loop_lag import LoopLag
from sockpqd.gateway.monitoring.metrics import Sources
from sockpqd.gateway.monitoring.pages import Pages

__all__ = ["Access", "HttpServer", "LoopLag", "OwnHosts", "Pages", "Sources", "start"]
