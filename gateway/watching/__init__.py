"""What is told to those who watch a node, over HTTP: /healthz, /readyz and /metrics."""

from gateway.watching.access import Access
from gateway.watching.http import HttpServer, start
from gateway.watching.loop_lag import LoopLag
from gateway.watching.metrics import Sources
from gateway.watching.pages import Pages

__all__ = ["Access", "HttpServer", "LoopLag", "Pages", "Sources", "start"]
