"""Questions of operators in trouble, answered from the pages alone, in a few clicks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import Client

pytest.importorskip("selenium", reason="selenium is not installed: make test-browser")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.driving import complaints, picture, press, text, wait
from tests.browser.trouble import DEAD, OTHERS, SMALL_NODE, TroubledCluster, prepare

DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(DRIVER is None, reason="chromium and its driver are not installed")


@pytest.fixture(scope="module")
def overview(browser: Any) -> Iterator[str]:
    """Return the address of the first page of a follower, which shows the trouble."""
    with TroubledCluster(nodes=3) as cluster:
        cluster.wait_until_level()
        with Client(cluster.servers) as client:
            prepare(client)
            follower = next(name for name in cluster.names if name != cluster.wait_for_leader())
            address = f"http://{cluster.http(follower)}/"
            browser.get(address)
            wait(lambda: "held back".upper() in text(browser), "the follower has it all")
            yield address


def test_which_queue_is_in_trouble_since_when_and_why(overview: str, browser: Any) -> None:
    browser.get(overview)
    assert re.search(
        rf"{DEAD + 1 + OTHERS} dead jobs of mail, the first died .* ago \(.*\): {DEAD + 1} of SMTPServerDisconnected, "
        f"{OTHERS} of ValueError", text(browser))
    picture(browser, "question_queue")
    assert complaints(browser) == []


def test_why_a_job_failed_and_what_happened_to_it_before(overview: str, browser: Any) -> None:
    browser.get(overview)
    browser.find_element(By.NAME, "search").send_keys("order_7000", Keys.ENTER)
    wait(lambda: "It died of SMTPServerDisconnected" in text(browser), "the job, without a list of one")
    page = text(browser)
    assert "after 4 attempts" in page
    assert "put back 3 times, buried once" in page
    assert "Connection unexpectedly closed: 4" in page
    assert "user7000@example.com" in page
    picture(browser, "question_job")
    assert complaints(browser) == []


def test_which_tenant_is_held_back_and_by_what(overview: str, browser: Any) -> None:
    browser.get(overview)
    assert "the group acme by its limit, as 2 run" in text(browser)
    browser.find_element(By.LINK_TEXT, "Groups").click()
    wait(lambda: browser.find_element(By.CSS_SELECTOR, "tbody tr").text.startswith("acme"), "it is the first of them")
    assert "its limit, as 2 run" in browser.find_element(By.CSS_SELECTOR, "tbody tr").text
    picture(browser, "question_tenant")
    assert complaints(browser) == []


def test_which_node_will_be_missing_first(overview: str, browser: Any) -> None:
    browser.get(overview)
    wait(lambda: f"The node nearest to a limit is {SMALL_NODE}" in text(browser), "all nodes have said what they use")
    assert complaints(browser) == []


def test_all_that_died_of_one_reason_are_retried(overview: str, browser: Any) -> None:
    """The last test, as there is no such trouble afterwards."""
    browser.get(overview)
    browser.find_element(By.PARTIAL_LINK_TEXT, "dead jobs").click()
    press(browser, f"Retry {DEAD + 1}")
    wait(lambda: f"{DEAD + 1} of {DEAD + 1}" in text(browser), "they are retried")
    browser.get(overview)
    wait(lambda: f"{OTHERS} dead jobs of mail" in text(browser), "the others stay")
    assert complaints(browser) == []
