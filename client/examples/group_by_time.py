"""Group events by equal activation time: python group_by_time.py EVENT..

A queue with order "time" sorts its jobs by the time for which they were put, even if that is past. Give all events
about one thing the same time, long ago, and they come one after the other, in whatever order they were put: one look at
the thing serves them all.
"""

import sys
import zlib
from itertools import groupby

from sockpq import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used

with Client() as client:
    client.queue_config("events", order="time")
    for event in sys.argv[1:]:
        client.put("events", event.encode(), at=zlib.crc32(event.encode()) % 1_000_000_000)
    while jobs := client.get_many(1000, "events", expire=60):
        for event, same in groupby(jobs, lambda job: job.data.decode()):
            print(event, len(client.done_many(list(same))))
