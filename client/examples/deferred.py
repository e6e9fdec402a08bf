"""Deferred processing: release orders that are not paid in time: python deferred.py SECONDS ORDER.. < paid.txt

Each order gets a job that becomes active when its time is up. Its key is the order, so that a program that learns of a
payment can delete the job in time.
"""

import signal
import sys

from sockpq import Client, JobNotFound, Key

if len(sys.argv) < 3:
    sys.exit(__doc__)           # it says how this is used
signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases

with Client() as client:
    seconds, *orders = sys.argv[1:]
    for order in orders:
        client.put("release", order.encode(), delay=float(seconds), key=order)
    for paid in sys.stdin.read().split():
        try:
            client.delete(Key("release", paid))
        except JobNotFound:
            print(paid, "is paid too late")
    for job in client.consume("release", expire=60, until_done=True):
        print(job.data.decode(), "is released")
