"""An origin on this side of a line, and its copy on the far side, with TLS on all connections."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.regions.line import LongLine
from devcluster.authority import Authority
from devcluster.cluster import LocalCluster


class LineAuthority(Authority):
    """Signs certificates for the addresses of both sides."""

    def node(self, name: str) -> dict[str, str]:
        cert, key = self.issue(name, [name, "127.0.0.1", LongLine.near, LongLine.far, LongLine.own, LongLine.aside])
        return {"cert": str(cert), "key": str(key), "ca": str(self.ca)}


class NearCluster(LocalCluster):
    """The cluster that is copied; all its nodes are on this side."""

    def __init__(self, folder: Path, authority: Authority, nodes: int, keep_bytes: int) -> None:
        super().__init__(
            nodes, {"feed": {"keep_bytes": keep_bytes}, "listen": {"insecure": True}}, folder, authority=authority)

    def host(self, name: str) -> str:
        return LongLine.near


class FarCluster(LocalCluster):
    """The copy. Clients on this side reach its nodes directly; its nodes reach the origin over the line."""

    def __init__(self, folder: Path, authority: Authority, nodes: int, line: LongLine, origin: NearCluster) -> None:
        replica = {"of": ",".join(origin.servers), "ca": str(authority.ca)}
        super().__init__(nodes, {"replica": replica, "listen": {"insecure": True}}, folder, authority=authority)
        self._line = line

    def host(self, name: str) -> str:
        return LongLine.aside

    def wrapper(self, name: str) -> Sequence[str]:
        return self._line.enter
