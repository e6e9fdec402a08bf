"""Smooth a peak: many jobs at once, few of them at a time: python smooth_peak.py JOBS

The queue's `limit` applies to all workers on all machines together; jobs of a burst wait in the queue.
"""

import signal
import sys
import threading
import time

from sockpq import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used
signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases

AT_A_TIME = 4
WORKERS = 16

busy, busiest = 0, 0
lock = threading.Lock()


def work(client: Client) -> None:
    """Call something that does not take more than four calls at a time."""
    global busy, busiest
    for _ in client.consume("peak", expire=60, until_done=True):
        with lock:
            busy += 1
            busiest = max(busiest, busy)
        time.sleep(0.01)
        with lock:
            busy -= 1


with Client() as client:
    client.queue_config("peak", limit=AT_A_TIME)
    count = client.put_many("peak", [b"%d" % number for number in range(int(sys.argv[1]))])
    threads = [threading.Thread(target=work, args=[client]) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{count} jobs done by {WORKERS} workers, {busiest} at a time")
