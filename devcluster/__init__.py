"""A cluster of real nodes on loopback, for the demo, the benchmarks and the tests."""

from devcluster.guardian import Guardian
from devcluster.ports import HOST, free_ports

__all__ = ["HOST", "Guardian", "free_ports"]
