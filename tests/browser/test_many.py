"""Every page, before 10,000 queues and a million records: lists are shown a page at a time, and searched to the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster

pytest.importorskip("selenium", reason="selenium is not installed: make test-browser")

from selenium.webdriver.common.by import By

from tests.browser.driving import complaints, picture, text, wait
from tests.browser.many import QUEUES, RECORD_QUEUES, RECORDS_OF_TESTS, fill, records_queue
from tests.browser.many import name as queue_name

DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(DRIVER is None, reason="chromium and its driver are not installed"), pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """Return where the pages of such a cluster are. One node: what others would hold besides is the same."""
    with LocalCluster(nodes=1) as cluster:
        with Client(cluster.servers, timeout=600) as client:
            fill(client, records=RECORDS_OF_TESTS)
        yield f"http://{cluster.http(cluster.wait_for_leader())}"


def test_pages_show_very_much_a_part_at_a_time(base: str, browser: Any) -> None:
    ended = RECORDS_OF_TESTS // RECORD_QUEUES
    all_queues = f"{QUEUES + RECORD_QUEUES:,}"
    for path, expected in (
        ("/queues", f"{all_queues} queues"), ("/queues?search=queue0999", "10 queues"),
        ("/queues?sort=waiting", "after →"), (f"/queue?name={records_queue(7)}&tab=ENDED", f"the last 25 of {ended:,}"),
        (f"/find?search={queue_name(9999)}", queue_name(9999)),
        ("/jobs?queues=*&states=DONE", "jobs, and there may be more"),
        ("/", "waiting"), ("/dead", "No job is dead"), ("/groups", "after →"), ("/cluster", all_queues),
    ):
        browser.get(base + path)
        wait(lambda: expected in text(browser), f"{path}: {expected}")         # noqa: B023
        picture(browser, f"many_{path.strip('/').partition('?')[0] or 'overview'}")
        assert complaints(browser) == [], path


def test_a_search_goes_on_where_it_ended(base: str, browser: Any) -> None:
    """Jobs that fit lie far behind others: the page says that it has not looked at all of them, and goes on."""
    browser.get(f"{base}/jobs?queues=*&states=READY&key=none")
    pages = 1
    while (onward := browser.find_elements(By.PARTIAL_LINK_TEXT, "search on")):
        address = onward[0].get_attribute("href")
        browser.get(address)
        pages += 1
    assert "No job that you may see fits this search." in text(browser)
    assert complaints(browser) == [], pages
