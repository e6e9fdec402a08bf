"""Asks the nodes of a local cluster which of them serves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.config import split_address
from gateway.dev.folder import DevNode

ASK_S = 0.5
# A job with this id cannot exist: who executes commands says so, the others say 500.
QUESTION, ANSWER = b"DONE 0\r\n", b"404 Job Not Found\r\n"


async def serving(nodes: Sequence[DevNode]) -> str | None:
    """Return the name of the node that executes commands, None if there is none."""
    answers = await asyncio.gather(*(_serves(node) for node in nodes))
    return next((node.name for node, serves in zip(nodes, answers, strict=True) if serves), None)


async def _serves(node: DevNode) -> bool:
    try:
        async with asyncio.timeout(ASK_S):
            reader, writer = await asyncio.open_connection(*split_address(node.config.listen.client))
            try:
                writer.write(QUESTION)
                return await reader.readline() == ANSWER
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return False
