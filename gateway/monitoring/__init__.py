"""Monitoring of a node over HTTP: /healthz, /readyz, /metrics and /events."""

from gateway.monitoring.basic_auth import Access
from gateway.monitoring.hosts import OwnHosts
from gateway.monitoring.http import HttpServer, start
from gateway.monitoring.loop_lag import LoopLag
from gateway.monitoring.metrics import Sources
from gateway.monitoring.pages import Pages

__all__ = ["Access", "HttpServer", "LoopLag", "OwnHosts", "Pages", "Sources", "start"]
