"""A periodic job: python periodic.py SECONDS TIMES

Any number of these may run, on any machine: the key is there once, so there is one job, and one of them has it at a
time. `done()` says when it comes again. It is no earlier than now: what was missed is not made up for.
"""

import signal
import sys

from sockpq import Client

if len(sys.argv) < 3:
    sys.exit(__doc__)           # it says how this is used
signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases

with Client() as client:
    seconds, times = float(sys.argv[1]), int(sys.argv[2])
    client.put("periodic", b"clean up", every=seconds, key="clean-up", on_duplicate="ignore")
    for number, job in enumerate(client.consume("periodic", expire=60, until_done=True), start=1):
        print(job.data.decode(), number)
        job.done(last=number >= times)
