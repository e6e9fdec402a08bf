"""Drives a browser: waits, presses buttons, points at things, takes pictures, and returns its complaints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

PATIENCE_S = 60.0
PICTURES = os.environ.get("SOCKPQD_PICTURES")      # a folder for pictures of each page


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


def point_at(browser: Any, element: Any) -> None:
    """Scroll to the element and move the pointer there."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    ActionChains(browser).move_to_element(element).perform()


def picture(browser: Any, name: str) -> None:
    if PICTURES:
        browser.save_screenshot(str(Path(PICTURES, f"{name}.png")))


def complaints(browser: Any) -> list[str]:
    """Return what the browser has to complain of: policies that were violated, scripts that failed."""
    return [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
