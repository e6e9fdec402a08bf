"""A queue of Celery with fair shares of time for each customer.

    celery -A tenants worker -c 1
    python -m tenants           # a producer: 20 exports of anna, then one of bert

The servers are those of SOCKPQ_SERVERS, or 127.0.0.1:11361.
"""

import os
import time
from typing import Any

from celery import Celery

SERVERS = os.environ.get("SOCKPQ_SERVERS", "127.0.0.1:11361").split(",")
URL = ";".join(f"sockpq://{server}/tenants" for server in SERVERS)

app = Celery("tenants", broker=URL, backend=URL.split(";")[0])
app.conf.broker_transport_options = {"queue_order_strategy": "fair"}    # by the time that customers have used
app.conf.task_acks_late = True              # which is that between hand-out and acknowledgement
app.conf.worker_prefetch_multiplier = 1


def customer(name: str, args: tuple[Any, ...], kwargs: Any, options: Any, **more: Any) -> dict[str, Any] | None:
    """Say whose a task is by its first argument, wherever it is called; retries are called here, too."""
    return {"MessageGroupId": str(args[0])} if args and "MessageGroupId" not in options else None


app.conf.task_routes = [customer]


@app.task(name="tenants.export")
def export(customer: str, table: int) -> str:
    """Export a table of a customer."""
    time.sleep(0.1)
    return f"table {table} of {customer}"


def main() -> None:
    """Let anna flood the queue, and see how long bert waits."""
    many = [export.delay("anna", table) for table in range(20)]
    one = export.delay("bert", 1)
    print(one.get(timeout=60))
    for other in many:
        other.get(timeout=60)
    print("before it", sum(other.date_done < one.date_done for other in many), "of anna's 20")


if __name__ == "__main__":
    main()
