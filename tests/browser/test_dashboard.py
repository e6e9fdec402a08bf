"""The dashboard of three real nodes in a real browser: every page, actions, a killed leader, and attempts to inject."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster

pytest.importorskip("selenium", reason="selenium is not installed: make test-browser")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE_S = 30.0
XSS = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
PICTURES = os.environ.get("SOCKPQD_PICTURES")      # a folder for pictures of each page

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="chromium and its driver are not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        running.wait_until_level()
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def wait(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def text(browser: Any) -> str:
    return str(browser.execute_script("return document.body.innerText"))


def press(browser: Any, label: str) -> None:
    """Press the button of this label, opening what it is in."""
    while True:
        browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
        try:
            browser.find_element(By.XPATH, f"//button[normalize-space()='{label}']").click()
            return
        except StaleElementReferenceException:      # the page was just made fresh
            continue


def picture(browser: Any, name: str) -> None:
    if PICTURES:
        browser.save_screenshot(str(Path(PICTURES, f"{name}.png")))


def complaints(browser: Any) -> list[str]:
    """What the browser has to complain of: policies that were violated, scripts that failed."""
    return [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]


def test_every_page_is_shown_and_nothing_is_complained_of(cluster: LocalCluster, browser: Any) -> None:
    with Client(cluster.servers) as client:
        for number in range(5):
            client.put("mail", b"letter %d" % number, priority=number, key=f"k{number}")
        client.put("mail", b"later", delay=600)
        client.get("mail", expire=600)
    base = f"http://{cluster.http(cluster.wait_for_leader())}"
    for path, expected in (
        ("/", "may be lost"), ("/queues", "mail"), ("/queue?name=mail", "letter 3"),
        ("/job?queue=mail&key=k1", "letter 1"),
        ("/pulses", "0 pulses"), ("/sessions", "sessions"), ("/users", "No users are required"),
    ):
        browser.get(base + path)
        assert expected in text(browser), path
        picture(browser, path.strip("/").partition("?")[0] or "cluster")
        assert complaints(browser) == [], path


def test_what_jobs_contain_does_nothing(cluster: LocalCluster, browser: Any) -> None:
    with Client(cluster.servers) as client:
        client.put("xss", XSS.encode(), key="a1")
    base = f"http://{cluster.http(cluster.names[0])}"
    for path in ("/queue?name=xss", "/job?queue=xss&key=a1", "/queues?search=" + XSS.replace(" ", "%20")):
        browser.get(base + path)
        assert "owned" not in browser.title
        assert "onerror" in browser.page_source
        assert complaints(browser) == []


def test_actions_by_keyboard_and_mouse_on_a_follower(cluster: LocalCluster, browser: Any) -> None:
    leader = cluster.wait_for_leader()
    follower = next(name for name in cluster.names if name != leader)
    browser.get(f"http://{cluster.http(follower)}/queues")
    field = browser.find_element(By.NAME, "queue")
    field.send_keys("made_here", Keys.ENTER)
    wait(lambda: "QUEUE CREATE made_here: 200 OK" in text(browser), "created")
    browser.get(f"http://{cluster.http(follower)}/queue?name=made_here")
    press(browser, "Pause")
    wait(lambda: "QUEUE PAUSE made_here OUT: 200 OK" in text(browser), "paused")
    press(browser, "Delete the queue")
    wait(lambda: "Are you sure?" in text(browser), "asked")
    picture(browser, "sure")
    press(browser, "Yes, do it")
    wait(lambda: "QUEUE DELETE made_here FORCE: 200 OK" in text(browser), "deleted")


def test_a_page_is_kept_fresh_while_the_leader_is_killed(cluster: LocalCluster, browser: Any) -> None:
    leader = cluster.wait_for_leader()
    follower = next(name for name in cluster.names if name != leader)
    browser.get(f"http://{cluster.http(follower)}/")
    wait(lambda: f"follows {leader}" in text(browser), "follows")
    cluster.kill(leader)
    cluster.wait_for_leader(PATIENCE_S)
    wait(lambda: "DOWN" in text(browser) and f"follows {leader}" not in text(browser), "a new leader, without a reload")
    picture(browser, "failover")
    cluster.restart(leader)
    cluster.wait_until_level()
    wait(lambda: "DOWN" not in text(browser), "the old leader is back")


def test_events_are_told_as_they_happen(cluster: LocalCluster, browser: Any) -> None:
    browser.get(f"http://{cluster.http(cluster.wait_for_leader())}/events-live")
    with Client(cluster.servers) as client:
        wait(lambda: client.put("told", b"x") and "PUT told" in text(browser), "told")
    picture(browser, "events")
    assert complaints(browser) == []


def test_it_fits_a_phone(cluster: LocalCluster, browser: Any) -> None:
    browser.set_window_size(500, 900)
    try:
        for path in ("/", "/queues", "/queue?name=mail"):
            browser.get(f"http://{cluster.http(cluster.names[0])}{path}")
            width = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert width <= 0, path
    finally:
        browser.set_window_size(1200, 900)
