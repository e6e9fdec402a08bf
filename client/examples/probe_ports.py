"""Probes many addresses at once in one process: python probe_ports.py 10.0.0.1:22 10.0.0.2:80 ..

A hundred tasks of one asyncio client share the work, and could do so with other processes.
"""

import asyncio
import sys

from sockpq.aio import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used

TASKS = 100


async def probe(client: Client) -> None:
    async for job in client.consume("probe", expire=30, until_done=True):
        host, _, port = job.data.decode().rpartition(":")
        try:
            async with asyncio.timeout(5):
                _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            result = "open"
        except OSError as error:        # TimeoutError is one
            result = type(error).__name__
        print(job.data.decode(), result)


async def main() -> None:
    async with Client() as client:
        await client.put_many("probe", [address.encode() for address in sys.argv[1:]])
        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(probe(client))


asyncio.run(main())
