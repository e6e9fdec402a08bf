"""Three nodes with trouble in them, for looking at the dashboard: they stay until Ctrl-C.

    .venv/bin/python -m tests.browser.trouble

A queue in which 412 jobs died of one reason, one that nobody takes from, one into which more comes than its worker
manages, a tenant at its limit, a job with retries and errors, and a node that is short of memory.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from typing import Any

from sockpq import Client

from devcluster.cluster import LocalCluster

DEAD, OTHERS = 412, 17
SMALL_NODE, SMALL_BYTES = "n2", 256 << 20
TRACE = """Traceback (most recent call last):
  File "/srv/shop/mail.py", line 88, in send
    server.sendmail(sender, [to], text)
  File "/usr/lib/python3.11/smtplib.py", line 908, in sendmail
    raise SMTPServerDisconnected("Connection unexpectedly closed")
smtplib.SMTPServerDisconnected: Connection unexpectedly closed: {}
"""


class TroubledCluster(LocalCluster):
    """Nodes of which SMALL_NODE may use less memory than the others."""

    def _configure(self, name: str) -> None:
        before = self._config
        if name == SMALL_NODE:
            self._config = {**before, "limits": {"memory_mark": SMALL_BYTES}}
        super()._configure(name)
        self._config = before


def letter(number: int) -> dict[str, Any]:
    return {"task": "shop.mail.send", "args": [f"user{number}@example.com", "Your order has been shipped"]}


def prepare(client: Client) -> None:
    """Fill a queue with dead jobs for several reasons, and others that wait."""
    client.queue_create("mail", tries=5, numbered=True, retain=3600, backoff=(2.0, 60.0))
    for number in range(DEAD + OTHERS):
        client.put("mail", json=letter(number), priority=number % 3)
    for number in range(DEAD + OTHERS):
        job = client.get("mail", expire=60)
        reason = "ValueError" if number % 25 == 7 else "SMTPServerDisconnected"
        client.bury(job, reason=reason, error=TRACE.format(number))
    client.put("mail", json=letter(7000), key="order_7000")
    for attempt in range(3):
        job = client.get("mail", expire=60, wait=30)
        client.later(job, reason="timeout" if attempt < 2 else "SMTPServerDisconnected", error=TRACE.format(attempt))
    client.bury(client.get("mail", expire=60, wait=60), reason="SMTPServerDisconnected", error=TRACE.format(4))
    client.queue_create("thumbnails", tries=3, sched="fair", numbered=True, retain=3600)
    client.group_config("acme", limit=2)
    for number in range(242):
        client.put("thumbnails", json={"task": "shop.images.resize", "args": [number]},
                   group="initech" if number % 6 == 5 else "acme")
        if number < 2:          # as many as acme may have
            client.get("thumbnails", expire=86_400)
    client.put_many("invoices", json=[{"invoice": number} for number in range(57)])
    client.queue_create("newsletter", limit=5)
    client.put_many("newsletter", json=[{"edition": 12, "to": number} for number in range(300)])
    client.queue_pause("newsletter")
    client.topic_bind("news", "mail", pattern="eu.#")
    client.pulse_create("provider", rate=10)
    for number in range(3):
        client.put("pages", json={"task": "app.resize", "args": [number]}, item="thumbnails_7")
    client.put("covers", json={"task": "app.album", "args": [1]}, item="album_7", after=["thumbnails_7"])
    client.put("notices", json={"task": "app.mail"}, item="notice_7", after=["album_7"])
    run = {"task": "app.nightly", "cron": {"line": "0 3 * * *", "tz": "Europe/Berlin", "at": int(time.time()) + 7200}}
    client.put("cron", json=run, key="app.nightly.1", delay=7200)


def work(servers: list[str], over: threading.Event) -> None:
    """Let jobs go through that are in no trouble."""
    with Client(servers) as client:
        while not over.is_set():
            client.put("reports", json={"report": random.randint(1, 99)})
            if (job := client.get("reports", expire=60)) is not None:
                time.sleep(0.05)
                client.done(job)
            client.put("mail", json=letter(random.randint(1, 9)))
            if (job := client.get("mail", expire=60)) is not None:
                if random.random() < 0.05:
                    client.later(job, reason="timeout", error=TRACE.format("later"))
                else:
                    client.done(job)
            client.put_many("exports", json=[{"export": number} for number in range(2)])
            if (job := client.get("exports", expire=60)) is not None:
                client.done(job)
            time.sleep(0.05)


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m tests.browser.trouble", description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
    ).parse_args()
    with TroubledCluster(nodes=3) as cluster:
        cluster.wait_until_level()
        with Client(cluster.servers) as client:
            prepare(client)
        over = threading.Event()
        worker = threading.Thread(target=work, args=(cluster.servers, over), daemon=True)
        worker.start()
        print(*(f"{name} http://{cluster.http(name)}/" for name in cluster.names), sep="\n", flush=True)
        print("leader", cluster.wait_for_leader(), flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            over.set()
            worker.join()


if __name__ == "__main__":
    main()
