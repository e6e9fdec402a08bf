"""The map of the clusters of `sockpqd --dev --clusters 2`: all of them, and the first one owns all names.

It is written once. A map that is there already stays, as users change it by `pqctl map`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sockpqd.gateway.config import split_address
from sockpqd.gateway.dev.folder import DevNode

ASK_S = 2.0


class _Refused(Exception):
    """A server refused a command: it requires users."""


async def join(leaders: Sequence[DevNode]) -> bool:
    """Give all clusters the map of the first, which gets one if it has none; returns False if the caller must retry.

    `leaders`: the leader of each cluster.
    """
    try:
        states = [await _state(node) for node in leaders]
        _, version, text = states[0]
        if version == 0:
            version, text = 1, b"".join(
                f"CLUSTER {node.cluster} {id_} {_servers(node)}\n".encode()
                for node, (id_, _, _) in zip(leaders, states, strict=True)
            )
        for node, (_, held, _) in zip(leaders, states, strict=True):
            if held < version:
                await _ask(node, b"MAP SET %d %d\r\n%b" % (version, len(text), text))
    except _Refused:
        return True
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
        return False        # a leader was replaced
    return True


def _servers(node: DevNode) -> str:
    return ",".join(member.client for member in node.config.cluster.members)


async def _state(node: DevNode) -> tuple[str, int, bytes]:
    """Return the id of the cluster, and the version and the text of its map."""
    words, _ = await _ask(node, b"CLUSTER ID\r\n")
    (version, _), text = await _ask(node, b"MAP\r\n")
    return words[0], int(version), text


async def _ask(node: DevNode, question: bytes) -> tuple[list[str], bytes]:
    """Send a command; returns the words of the answer after OK, and the data of MAP.

    Raises _Refused, OSError, TimeoutError, ValueError, IncompleteReadError.
    """
    async with asyncio.timeout(ASK_S):
        reader, writer = await asyncio.open_connection(*split_address(node.config.listen.client))
        try:
            writer.write(question)
            code, *words = (await reader.readline()).decode().split()
            if code in ("401", "403"):
                raise _Refused
            if code != "200":
                raise ValueError(code)
            data = await reader.readexactly(int(words[2])) if question == b"MAP\r\n" else b""
        finally:
            writer.close()
    return words[1:], data
