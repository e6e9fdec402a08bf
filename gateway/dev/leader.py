"""Asks the nodes of a local cluster which of them serves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sockpqd.gateway.config import split_address
from sockpqd.gateway.dev.folder import DevNode

ASK_S = 0.5
# Not a command that is executed, as that would be an entry in the log of all nodes.
QUESTION = b"INTERCONNECT\r\nCLUSTER STATUS\r\n"


async def serving(nodes: Sequence[DevNode]) -> DevNode | None:
    """Return the node that executes commands, None if there is none."""
    answers = await asyncio.gather(*(_serves(node) for node in nodes))
    return next((node for node, serves in zip(nodes, answers, strict=True) if serves), None)


async def _serves(node: DevNode) -> bool:
    """Return whether the node serves: only then does it answer with its own id, and as an online leader."""
    try:
        async with asyncio.timeout(ASK_S):
            reader, writer = await asyncio.open_connection(*split_address(node.config.listen.client))
            try:
                writer.write(QUESTION)
                number, lines = [int((await reader.readline()).split()[-1]) for _ in range(2)]
                status = [await reader.readline() for _ in range(lines)]
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError, IndexError):
        return False
    return any(line.startswith(b"%d " % number) and b" LEADER ONLINE " in line for line in status)
