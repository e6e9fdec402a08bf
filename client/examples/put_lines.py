"""Queue each line of the standard input as a job: ls *.log | python put_lines.py files

All lines are there once when it ends without an error, whatever happens to the servers meanwhile.
"""

import sys

from sockpq import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used

with Client() as client:
    queue = sys.argv[1]
    lines = [line.rstrip(b"\n") for line in sys.stdin.buffer]
    print(client.put_many(queue, lines), "jobs put,", client.total(queue).jobs, "waiting in", queue)
