"""More workers than the rate allows: python analyse_answers.py [JOBS [WORKERS [SECONDS_PER_JOB]]]

An API allows ten requests a second, and its answers take long to analyse: two seconds for each job in all. The queue
hands out ten jobs a second, and while some workers analyse, others have their turn: with twenty workers no turn is
lost.
"""

import signal
import sys
import threading
import time

from sockpq import Client

RATE = 10
JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
WORKERS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
JOB_S = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0

given: list[float] = []


def work(client: Client) -> None:
    """Ask, and analyse the answer."""
    for _ in client.consume("calls", expire=60, until_done=True):
        begun = time.monotonic()
        given.append(begun)                         # here it asks the API, which takes a part of the time
        time.sleep(max(0.0, begun + JOB_S - time.monotonic()))


signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases
with Client() as client:
    client.queue_config("calls", rate=RATE, per=1)
    client.put_many("calls", [b"%d" % number for number in range(JOBS)])
    seconds = max(JOBS / RATE, JOBS * JOB_S / WORKERS)
    print(f"{JOBS} jobs, {RATE} in a second at most: waiting some {seconds:.0f} s for the last one ..", file=sys.stderr)
    threads = [threading.Thread(target=work, args=[client]) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The last group is given at the end of a period and the first at the beginning: between them are whole periods.
    print(f"{JOBS} jobs by {WORKERS} workers, {(JOBS - RATE) / (max(given) - min(given)):.1f} in a second")
