"""A Celery project whose broker and result backend are sockpqd: tasks, a chord, a countdown.

    celery -A shop worker -c 2
    python -m shop              # a producer: an order every second, until Ctrl-C

The servers are those of SOCKPQ_SERVERS, or 127.0.0.1:11361.
"""

import os
import time
from contextlib import suppress

from celery import Celery, chord

SERVERS = os.environ.get("SOCKPQ_SERVERS", "127.0.0.1:11361").split(",")
URL = ";".join(f"sockpq://{server}/shop" for server in SERVERS)

app = Celery("shop", broker=URL, backend=URL.split(";")[0])
app.conf.task_acks_late = True              # a task of a worker that dies is done by another one
app.conf.worker_prefetch_multiplier = 4


@app.task(name="shop.pack")
def pack(order: int, article: str) -> int:
    """Pack one article; returns its price."""
    time.sleep(0.1)
    return order + len(article)


@app.task(name="shop.bill")
def bill(prices: list[int]) -> int:
    """Write the bill when everything is packed; remind in an hour."""
    remind.apply_async((sum(prices),), countdown=3600)      # waits in the cluster, not in a worker
    return sum(prices)


@app.task(name="shop.remind")
def remind(total: int) -> None:
    """Remind the customer to pay the bill."""


def main() -> None:
    """Order an article every second, until interrupted."""
    order = 0
    while True:
        order += 1
        chord((pack.s(order, article) for article in ("pen", "paper", "ink")), bill.s()).delay()
        print("order", order, flush=True)
        time.sleep(1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
