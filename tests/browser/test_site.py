"""The documentation site in a real browser, opened as files: its search works, and nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: make test-browser")
pytest.importorskip("material", reason="mkdocs-material is not installed: make docs")

from selenium import webdriver
from selenium.webdriver.common.by import By

ROOT = Path(__file__).parents[2]
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE_S = 60.0

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="chromium and its driver are not installed")


def test_the_search_works_without_a_server(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path / "site"], cwd=ROOT, check=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        browser.get((tmp_path / "site" / "index.html").as_uri())
        browser.find_element(By.TAG_NAME, "body").send_keys("/")        # opens the search
        browser.switch_to.active_element.send_keys("autoscale")
        until = time.monotonic() + PATIENCE_S
        while not (found := browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item a")):
            assert time.monotonic() < until, "nothing is found"
            time.sleep(0.2)
        places = [one.get_attribute("href") for one in found]
        assert any("pqworker" in place or "WORKERS" in place for place in places if place), places
        asked = "".join(entry["message"] for entry in browser.get_log("performance"))
        assert '"url":"file://' in asked
        assert '"url":"http' not in asked
    finally:
        browser.quit()
