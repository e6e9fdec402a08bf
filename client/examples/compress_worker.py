"""A worker: compress the files whose names are the jobs of a queue: python compress_worker.py files

Run as many as you like, on as many machines as have access to the files. SIGTERM or Ctrl-C lets it finish the file at
hand. A worker that dies, or takes more than a minute for a file, loses it to another one.
"""

import gzip
import os
import shutil
import signal
import sys
from pathlib import Path

from sockpq import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def compress(path: Path) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    with path.open("rb") as plain, gzip.open(unfinished, "wb") as packed:
        shutil.copyfileobj(plain, packed)
    unfinished.rename(f"{path}.gz")     # at once, so that nobody sees half a file, and doing it twice does no harm


for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, stop)
with Client() as client:
    while not stopping:
        for job in client.consume(sys.argv[1], expire=60, wait=1):
            path = Path(os.fsdecode(job.data))
            compress(path)
            print(path, "compressed", flush=True)
            if stopping:
                job.done()
                break
