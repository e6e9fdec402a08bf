"""Takes the pictures of docs/DASHBOARD.md, of three real nodes with real work.

    .venv/bin/python -m tests.browser.pictures docs/pictures/dashboard

It takes about ten minutes, so that the charts have something to show.
"""

from __future__ import annotations

import argparse
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.browser.trouble import TRACE

WORK_S = 600
SETTLE_S = 3.0              # until charts are drawn, and queues that are looked at have samples
WIDTH, PHONE, HEIGHT_MAX = 1200, 400, 1700
LAG = 100                   # entries that a node may be behind while others work
REASONS = ("ConnectionError", "ConnectionError", "ConnectionError", "ValueError")
QUEUES = {"mail": (6, 0.02), "thumbnails": (3, 0.04), "exports": (1, 0.3), "reports": (1, 0.1)}   # jobs at a time, work
PAGES = {
    "overview": "/", "cluster": "/cluster", "queues": "/queues?sort=in", "dead": "/dead", "queue": "/queue?name=mail",
    "groups": "/groups", "pulses": "/pulses", "workers": "/workers", "topics": "/topics", "slow": "/slow",
    "sessions": "/sessions", "users": "/users", "job": "/job?queue=mail_dead&key=letter_17",
    "item": "/items?name=thumbnails_7",
    "background": "/background", "pulse": "/pulses?name=provider",
}


class Work(threading.Thread):
    """Calls something again and again, with a client of its own, until it is stopped."""

    def __init__(self, servers: str, call: Callable[[Client], None]) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._call = call
        self.over = False

    def run(self) -> None:
        with Client(self._servers) as client:
            while not self.over:
                self._call(client)


def produce(client: Client) -> None:
    """Put some jobs, more of them at some times than at others."""
    tide = 1 + 0.6 * (time.monotonic() % 240 < 90)
    for name, (most, _) in QUEUES.items():
        for _ in range(round(random.random() * most * tide)):
            client.put(name, json={"to": random.choice(("ann", "bob", "eva")), "subject": "hello"},
                       priority=random.randint(0, 5), group=random.choice(("acme", "initech", "umbrella")))
    time.sleep(0.1)


def consumer(name: str, work_s: float) -> Callable[[Client], None]:
    """Return what takes a job of this queue, works on it and sometimes fails."""
    def consume(client: Client) -> None:
        job = client.get(name, expire=60, wait=1)
        if job is None:
            return
        time.sleep(random.random() * work_s)
        luck = random.random()
        if luck < 0.004:
            client.bury(job, reason=random.choice(REASONS))
        elif luck < 0.04:
            client.later(job)
        else:
            client.done(job)
    return consume


def prepare(client: Client) -> None:
    """Make what does not change."""
    client.queue_create("mail", tries=5, numbered=True)
    client.put("mail", json={"task": "shop.mail.send", "args": ["ann@example.com", "Your order has been shipped"]},
               key="letter_17", priority=3)
    for attempt in range(1, 4):
        job = client.get("mail", expire=60, block=True)
        if attempt < 3:
            client.later(job, reason="timeout", error=TRACE.format(attempt))
        else:
            client.bury(job, reason="Timeout", error=TRACE.format(attempt))
    for number in range(12):            # of which some are retried
        client.put("mail", json={"to": "ann", "subject": f"letter {number}"})
        client.bury(client.get("mail", expire=60), reason=REASONS[number % len(REASONS)])
    client.queue_create("invoices", tries=3)
    client.put("invoices", b"1")
    client.queue_pause("invoices")
    client.topic_bind("news", "mail", pattern="eu.#")
    client.pulse_create("provider", rate=10)
    client.group_config("acme", limit=20)
    client.queue_create("nights", retain=86_400, numbered=True)
    for number in range(3):
        client.put("pages", json={"task": "app.resize", "args": [number]}, item="thumbnails_7")
    for number in range(2):
        client.put("covers", json={"task": "app.album", "args": [number]}, item="album_7", after=["thumbnails_7"])
    client.put("notices", json={"task": "app.mail"}, item="notice_7", after=["album_7"])
    client.get("pages", expire=86_400)
    run = {"task": "app.nightly", "cron": {"line": "0 3 * * *", "tz": "Europe/Berlin", "at": int(time.time()) + 7200}}
    client.put("cron", json=run, key="app.nightly.1", delay=7200)


def waiting_for_grants(client: Client) -> None:
    """Use the pulse, as a program that calls a provider does."""
    with client.pulse("provider").turn():
        time.sleep(random.random() * 0.2)


def press(driver: Any, address: str, button: str) -> None:
    """Press the first button of a page whose label begins so; by a script, as the page is exchanged now and then."""
    driver.get(address)
    driver.execute_script(
        "[...document.querySelectorAll('button')].find(one => one.textContent.startsWith(arguments[0])).click()",
        button)
    time.sleep(SETTLE_S)


def browser() -> Any:
    """Return a browser without a window."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def picture(driver: Any, address: str, path: Path, width: int = WIDTH, scheme: str = "light") -> None:
    """Save a picture of the page, from its top to its end or HEIGHT_MAX."""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    time.sleep(SETTLE_S)
    height = min(HEIGHT_MAX, driver.execute_script("return document.documentElement.scrollHeight"))
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": height})
    driver.save_screenshot(str(path))


def main(folder: Path, work_s: float) -> None:
    """Take the pictures after so many seconds of work."""
    with LocalCluster(nodes=3) as cluster:
        cluster.wait_until_level()
        with Client(cluster.servers) as client:
            prepare(client)
        work = [Work(cluster.servers, produce), Work(cluster.servers, waiting_for_grants)] + [
            Work(cluster.servers, consumer(name, work_s)) for name, (most, work_s) in QUEUES.items()
            for _ in range(1 + most // 3)
        ]
        for one in work:
            one.start()
        time.sleep(work_s)
        leader = cluster.wait_for_leader()
        base, driver = f"http://{cluster.http(leader)}", browser()
        press(driver, f"{base}/dead?search=mail", "Retry")
        for name, path in PAGES.items():
            picture(driver, base + path, folder / f"{name}.png")
        picture(driver, f"{base}/", folder / "overview_dark.png", scheme="dark")
        picture(driver, f"{base}/queues?sort=in", folder / "queues_400.png", PHONE)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": WIDTH, "height": 420, "deviceScaleFactor": 1, "mobile": False})
        press(driver, f"{base}/queue?name=reports", "Delete the queue")
        driver.save_screenshot(str(folder / "sure.png"))
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": WIDTH, "height": 700, "deviceScaleFactor": 1, "mobile": False})
        driver.get(f"{base}/events-live")
        time.sleep(SETTLE_S)
        driver.save_screenshot(str(folder / "events.png"))
        follower = next(name for name in cluster.names if name != leader)
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.set_window_size(WIDTH, 700)
        driver.get(f"http://{cluster.http(follower)}/queues?sort=in")
        time.sleep(SETTLE_S)
        cluster.kill(follower)
        time.sleep(SETTLE_S)
        driver.save_screenshot(str(folder / "stale.png"))
        cluster.restart(follower)
        cluster.wait_until_level(lag=LAG)
        driver.get(f"http://{cluster.http(follower)}/")
        cluster.kill(cluster.wait_for_leader())
        cluster.wait_for_leader()
        time.sleep(2 * SETTLE_S)
        driver.save_screenshot(str(folder / "failover.png"))
        driver.quit()
        for one in work:
            one.over = True
        for one in work:
            one.join(5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=float, nargs="?", default=WORK_S, help="of work before (%(default)s)")
    asked = parser.parse_args()
    main(asked.folder, asked.seconds)
