"""Report orders as they are finished, without polling: python watch_orders.py ORDER..

An order is an item: all jobs that belong to it, in whatever queues. FINI says that the last of them is done. Servers
may come and go meanwhile.
"""

import signal
import sys

from sockpq import Client, EventsLost

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used
signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases

with Client() as client:
    orders = set(sys.argv[1:])
    events = client.events("FINI", sorted(orders))
    print("watching", flush=True)
    while orders:
        try:
            for event in events:
                if event.name in orders:        # it may come to an end again
                    orders.remove(event.name)
                    print(event.name, "is finished", flush=True)
                if not orders:
                    break
        except EventsLost as lost:
            print("perhaps missed:", lost, flush=True)
