"""The dashboard of three real nodes in a real browser: every page, actions, a killed leader, and attempts to inject."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.gateway.dashboard.actions import ACTIONS
from sockpqd.gateway.dashboard.site import PAGES

pytest.importorskip("selenium", reason="selenium is not installed: make test-browser")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.driving import PATIENCE_S, complaints, picture, point_at, press, text, wait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
XSS = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
AXE = Path(__file__).parent / "axe" / "axe.min.js"      # https://github.com/dequelabs/axe-core 4.14.1, MPL 2.0

# Whether something is drawn: how many pixels of a canvas are not transparent.
DRAWN_PIXELS = """
const canvas = arguments[0], pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
return pixels.filter((value, at) => at % 4 === 3 && value > 0).length;
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="chromium and its driver are not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        running.wait_until_level()
        yield running


def client_address(cluster: LocalCluster) -> tuple[str, int]:
    """Return host and port of the leader, for clients."""
    host, _, port = cluster.server(cluster.wait_for_leader()).rpartition(":")
    return host, int(port)


def test_every_page_is_shown_and_nothing_is_complained_of(cluster: LocalCluster, browser: Any) -> None:
    with Client(cluster.servers) as client:
        for number in range(5):
            client.put("mail", b"letter %d" % number, priority=number, key=f"k{number}", group="ann", item="album_7")
        client.put("mail", b"later", delay=600)
        client.get("mail", expire=600)
        client.topic_bind("news", "mail", pattern="eu.#")
        client.pulse_create("mails", rate=10)
    base = f"http://{cluster.http(cluster.wait_for_leader())}"
    shown = {
        "/": "may be lost", "/cluster": "may be lost", "/queues": "mail", "/queue?name=mail": "letter 3",
        "/job?queue=mail&key=k1": "letter 1", "/items": "album_7", "/groups": "ann", "/pulses": "mails",
        "/workers": "No worker is running", "/topics": "news", "/topics?name=news": "eu.#",
        "/slow": "since this node was started", "/sessions": "sessions", "/users": "No users are required",
        "/jobs?queues=mail&key=k3": "letter 3", "/background": "None was begun",
        "/clusters": "This cluster is used alone",
        "/events-live": "as it happens", "/dead": "No job is dead", "/find?search=k2": "letter 2",
    }
    for node in cluster.names:
        if not base.endswith(cluster.http(node)):
            with_age(f"http://{cluster.http(node)}", browser)
    assert {path.partition("?")[0] for path in shown} == set(PAGES)
    for path, expected in shown.items():
        browser.get(base + path)
        assert expected in text(browser), path
        picture(browser, path.strip("/").partition("?")[0] or "overview")
        assert complaints(browser) == [], path


def violations(browser: Any) -> list[str]:
    """Return what axe-core finds against WCAG 2.1, levels A and AA: the rule, and where."""
    browser.execute_script(AXE.read_text())
    browser.set_script_timeout(PATIENCE_S)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        ".then(found => done(found.violations))")
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_pages_are_accessible(cluster: LocalCluster, browser: Any, width: int, scheme: str) -> None:
    base = f"http://{cluster.http(cluster.wait_for_leader())}"
    with Client(cluster.servers) as client:
        client.put("seen", b"body", key="k1", item="flow_1", group="eva", on_duplicate="ignore")
        client.put("seen", b"body", item="flow_2", after=["flow_1"])
        client.put("unseen", b"body")
        client.bury(client.get("unseen", expire=600), reason="refused", error="Traceback: refused")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == 400})
    try:
        for path in (*(page for page in PAGES if page not in ("/queue", "/job")), "/queue?name=seen",
                     "/job?queue=seen&key=k1", "/items?name=flow_1", "/jobs?queues=*", "/groups?name=eva"):
            browser.get(base + path)
            picture(browser, f"{path.strip('/').partition('?')[0] or 'overview'}_{width}_{scheme}")
            assert violations(browser) == [], path
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, (path, wide)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_long_names_of_queues_do_not_cut_off_the_figures(cluster: LocalCluster, browser: Any) -> None:
    """Of a window of 1,200 px, with pictures in the table, which appear when there are figures of some seconds."""
    name = "thumbnails_of_new_pictures"
    address = f"http://{cluster.http(cluster.wait_for_leader())}/queues?search={name}"
    browser.set_window_size(1200, 900)
    with Client(cluster.servers) as client:
        def has_pictures() -> bool:
            client.put_many(name, [b"x"] * 100)
            browser.get(address)
            return len(browser.find_elements(By.CSS_SELECTOR, "td .spark")) > 1
        wait(has_pictures, "no pictures")
    table = browser.find_element(By.CSS_SELECTOR, ".wide")
    assert table.get_property("scrollWidth") <= table.get_property("clientWidth")


def with_age(base: str, browser: Any) -> None:
    """A follower says how old its pages are."""
    browser.get(f"{base}/queues")
    assert "less than 1 s old" in text(browser)


def test_what_strangers_write_does_nothing(cluster: LocalCluster, browser: Any) -> None:
    """Names, keys, groups, patterns, reasons and bodies, as far as the protocol lets them be anything."""
    word = "<img/src=x/onerror=document.title='owned'>"
    with Client(cluster.servers) as client:
        client.put("xss", XSS.encode(), key="a1")
        client.put("xss", XSS.encode())
        client.queue_create("xss_tries", tries=1)
        with socket.create_connection(client_address(cluster), PATIENCE_S) as raw:
            raw.settimeout(PATIENCE_S)
            for line in (
                f"PUT xss 0 1 KEY {word}\r\nx", f"PUT xss 0 1 GROUP {word}\r\nx",
                f"TOPIC BIND xss xss PATTERN {word}\r\n", "PUT xss_tries 0 1\r\nx", "GET xss_tries\r\n",
            ):
                raw.sendall(line.encode())
                answer = raw.recv(1000).decode()
            number = answer.split()[3]
            raw.sendall(f"BURY {number} REASON {word}\r\n".encode())
            raw.recv(1000)
    base = f"http://{cluster.http(cluster.names[0])}"
    hostile = quote(XSS)
    for path in (
        "/queue?name=xss", "/job?queue=xss&key=a1", "/job?queue=xss&key=a1&form=text", "/queue?name=xss_tries",
        "/groups", "/topics", "/topics?name=xss", "/slow", "/workers?cron=xss",
        *(f"{page}?search={hostile}" for page in PAGES),
        f"/queue?name={hostile}", f"/job?queue={hostile}&key={hostile}", f"/topics?name={hostile}",
        f"/queues?sort={hostile}&first={hostile}&note={hostile}", f"/workers?cron={hostile}", f"/{hostile}",
    ):
        browser.get(base + path)
        assert browser.title != "owned", path          # which is all that the scripts would do
        assert not browser.find_elements(By.CSS_SELECTOR, "img, main script"), path
        assert [one for one in complaints(browser) if "404" not in one] == [], path
    browser.get(f"{base}/job?queue=xss&key=a1")
    assert XSS in text(browser)


class Press(NamedTuple):
    """A button to be pressed, and what the page then tells; `action`: of gateway.dashboard.actions."""

    path: str
    action: str
    button: str
    told: str
    fields: Mapping[str, str] = {}


JOBS_AND_QUEUES = (
    Press("/queue?name=acts", "job.put", "Put", "PUT acts 3 7 KEY k2: 200 OK",
          {"priority": "3", "options": "KEY k2", "body": "by hand"}),
    Press("/queue?name=acts", "queue.resume", "Resume", "QUEUE RESUME acts: 200 OK"),
    Press("/job?queue=acts&key=k2", "job.change", "Change", "CHANGE KEY acts k2 PRI 3 DATA 7: 200 OK",
          {"body": "changed"}),
    Press("/job?queue=acts&key=k2", "job.delete", "Delete", "DELETE KEY acts k2: 200 OK"),
    Press("/queue?name=acts", "queue.config", "Change", "QUEUE CONFIG acts TRIES 3: 200 OK", {"settings": "TRIES 3"}),
    Press("/job?id={late}", "job.later", "Put back", "LATER {late}: 200 OK"),
    Press("/job?id={dead}", "job.bury", "Bury", "BURY {dead}: 200 OK"),
    Press("/queue?name=acts", "job.kick", "Kick", "KICK acts 1: 200 OK 1", {"count": "1"}),
    Press("/queue?name=acts", "job.kick_here", "Kick", "KICK acts 1 HERE: 200 OK", {"count": "1"}),
    Press("/job?queue=numbered&number={number}", "job.retry", "Retry", "KICK JOB NUMBER {number}: 200 OK"),
    Press("/job?id={moved}", "job.move", "Move", "MOVE {moved} other: 200 OK", {"to": "other"}),
    Press("/queue?name=acts", "queue.move", "Move", "QUEUE MOVE acts other COUNT 1: 200 OK",
          {"to": "other", "count": "1"}),
    Press("/items?name=album_8", "item.retry", "Retry dead and buried jobs", "ITEM RETRY album_8: 200 OK 0"),
    Press("/items?name=album_8", "item.release", "Release the hold", "ITEM RELEASE album_8: 200 OK"),
    Press("/items?name=album_8", "item.cancel", "Cancel the item", "ITEM CANCEL album_8: 200 OK"),
    Press("/queue?name=acts", "queue.purge", "Purge", "QUEUE PURGE acts READY: 200 OK"),
)
SERVICE = (
    Press("/groups", "fair.config", "Change", "SCHED CONFIG CAP 20: 200 OK", {"settings": "CAP 20"}),
    Press("/groups", "group.config", "Set", "GROUP CONFIG ann LIMIT 5: 200 OK",
          {"group": "ann", "settings": "LIMIT 5"}),
    Press("/groups?name=ann", "group.pause", "Pause", "GROUP PAUSE ann FOR 60: 200 OK", {"seconds": "60"}),
    Press("/groups?name=ann", "group.resume", "Resume", "GROUP RESUME ann: 200 OK"),
    Press("/groups?name=ann", "group.delete", "Delete", "GROUP DELETE ann: 200 OK"),
    Press("/topics", "topic.bind", "Bind", "TOPIC BIND all acts: 200 OK", {"topic": "all", "queue": "acts"}),
    Press("/topics?name=all", "topic.unbind", "Unbind", "TOPIC UNBIND all acts: 200 OK"),
    Press("/topics", "topic.bind", "Bind", "TOPIC BIND all acts: 200 OK", {"topic": "all", "queue": "acts"}),
    Press("/topics?name=all", "topic.delete", "Delete the topic", "TOPIC DELETE all: 200 OK"),
    Press("/workers", "worker.state", "Tell", "WORKER SET w1 STATE RUN: 200 OK"),
    Press("/workers", "worker.bounds", "Set", "WORKER SET w1 MIN 2 MAX 5: 200 OK", {"least": "2", "most": "5"}),
    Press("/users", "user.set", "Set", "USER SET eva get: 200 OK",
          {"user": "eva", "rights": "get", "secret": "correct-horse-battery"}),
    Press("/users", "user.delete", "Delete", "USER DELETE eva: 200 OK"),
    Press("/sessions", "session.end", "End", "SESSION END"),
    Press("/cluster", "node.snapshot", "Write a snapshot here", "CLUSTER SNAPSHOT: 200 OK"),
    Press("/cluster", "node.offline", "Switch {here} offline", "OFFLINE: 200 OK"),
    Press("/cluster", "node.online", "Switch {here} online", "ONLINE: 200 OK"),
    Press("/cluster", "cluster.offline", "Switch the service offline", "CLUSTER OFFLINE: 200 OK"),
    Press("/cluster", "cluster.online", "Switch the service online", "CLUSTER ONLINE: 200 OK"),
    Press("/cluster", "cluster.transfer", "Let {here} lead", "CLUSTER TRANSFER {here}: 200 OK"),
)
BY_KEYBOARD = {"queue.create", "queue.pause", "queue.delete"}       # in the next test


def test_each_action_is_pressed_somewhere() -> None:
    assert {press.action for press in (*JOBS_AND_QUEUES, *SERVICE)} | BY_KEYBOARD == set(ACTIONS)


def test_those_of_one_reason_are_retried(cluster: LocalCluster, browser: Any) -> None:
    """From the page of dead jobs, on a follower."""
    with Client(cluster.servers) as client:
        for number in range(30):
            client.put("reasons", b"body")
            client.bury(client.get("reasons", expire=600), reason="refused" if number % 3 else "broken")
        browser.get(f"http://{cluster.http(follower_of(cluster))}/dead?search=reasons")
        wait(lambda: "refused" in text(browser), "the follower has them")
        press(browser, "Retry 20")
        wait(lambda: "20 of 20" in text(browser), "they are retried")
        assert client.queue_stat("reasons")["dead"] == 10
        browser.get(f"http://{cluster.http(follower_of(cluster))}/jobs?queues=reasons_dead&reason=broken")
        press(browser, "Remove all")
        wait(lambda: "Are you sure?" in text(browser), "asked")
        press(browser, "Yes, do it")
        wait(lambda: "10 of 10" in text(browser), "they are removed")
        client.queue_purge("reasons", "ready")
    assert complaints(browser) == []


def follower_of(cluster: LocalCluster) -> str:
    leader = cluster.wait_for_leader()
    return next(name for name in cluster.names if name != leader)


def act(cluster: LocalCluster, browser: Any, node: str, chosen: Press, names: Mapping[str, str]) -> None:
    """Fill in the form, press its button, confirm what does harm, and see the outcome."""
    told, button = chosen.told.format(**names), chosen.button.format(**names)
    browser.get(f"http://{cluster.http(node)}{chosen.path.format(**names)}")
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    form = browser.find_element(
        By.XPATH, f"//form[input[@name='action'][@value='{chosen.action}']][.//button[normalize-space()='{button}']]"
    )
    for name, value in chosen.fields.items():
        field = form.find_element(By.NAME, name)
        field.clear()
        field.send_keys(value)
    form.find_element(By.TAG_NAME, "button").click()
    if ACTIONS[chosen.action].harm:
        wait(lambda: "Are you sure?" in text(browser), f"asked: {told}")
        press(browser, "Yes, do it")
    wait(lambda: told in text(browser), told)
    assert "correct-horse" not in browser.page_source
    assert "correct-horse" not in browser.current_url


def test_actions_on_jobs_and_queues(cluster: LocalCluster, browser: Any) -> None:
    """On a follower: each action is sent to the leader and its outcome is shown; what does harm asks first."""
    node = follower_of(cluster)
    with Client(cluster.servers) as client:
        for _ in range(3):
            client.put("taken", b"body", item="album_8")
        taken = [client.get("taken", expire=600) for _ in range(3)]
        client.item_hold("album_8")
        for key in ("k1", None):
            client.put("acts", b"body", key=key)
        client.put("acts", b"dies")
        dead = client.get("acts", expire=600)
        number = client.put("numbered", b"body", number=True).number
        client.bury(client.get("numbered", expire=600), here=True)
        names = {"late": str(taken[0].id), "moved": str(taken[1].id), "dead": str(dead.id), "number": str(number)}
        for chosen in JOBS_AND_QUEUES:
            act(cluster, browser, node, chosen, names)
        assert client.total("acts").jobs == 0
        assert client.total("other").jobs == 1
    assert complaints(browser) == []


def test_actions_on_the_service(cluster: LocalCluster, browser: Any) -> None:
    """On a follower, which leads at the end."""
    node = follower_of(cluster)
    with Client(cluster.servers) as client, socket.create_connection(client_address(cluster), PATIENCE_S) as raw:
        client.queue_create("acts_on_service")
        raw.settimeout(PATIENCE_S)
        for line in ("SESSION", "WORKER w1 2 0"):
            raw.sendall(f"{line}\r\n".encode())
            assert raw.recv(1000).startswith(b"200 "), line
        for chosen in SERVICE:
            act(cluster, browser, node, chosen, {"here": node})
    wait(lambda: cluster.wait_for_leader() == node, "the follower leads")
    cluster.wait_until_level()
    complaints(browser)


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


def test_a_page_says_that_its_node_is_gone_and_goes_on_when_it_is_back(cluster: LocalCluster, browser: Any) -> None:
    follower = next(name for name in cluster.names if name != cluster.wait_for_leader())
    browser.get(f"http://{cluster.http(follower)}/queues")
    wait(lambda: "less than 1 s old" in text(browser), "young")
    cluster.kill(follower)
    wait(lambda: "this node does not answer" in text(browser), "it is gone")
    cluster.restart(follower)
    cluster.wait_until_level()
    wait(lambda: "less than 1 s old" in text(browser), "and back")
    with Client(cluster.servers) as client:
        client.put("after_all", b"x")
    wait(lambda: "after_all" in text(browser), "fresh again")
    complaints(browser)             # of connections that were refused


def test_a_stale_page_is_greyed_and_leads_to_the_same_page_of_another_node(cluster: LocalCluster, browser: Any) -> None:
    follower = next(name for name in cluster.names if name != cluster.wait_for_leader())
    browser.get(f"http://{cluster.http(follower)}/queues?sort=waiting")
    assert not browser.find_element(By.ID, "stale").is_displayed()
    cluster.kill(follower)
    began = time.monotonic()
    wait(lambda: browser.find_element(By.ID, "stale").is_displayed(), "it is stale")
    print(f"stale after {time.monotonic() - began:.1f} s")
    opacity = browser.execute_script("return getComputedStyle(document.getElementById('content')).opacity")
    assert float(opacity) < 1
    picture(browser, "stale")
    other = next(name for name in cluster.names if name != follower)
    browser.find_element(By.LINK_TEXT, other).click()
    wait(lambda: browser.current_url == f"http://{cluster.http(other)}/queues?sort=waiting", "at another node")
    assert not browser.find_element(By.ID, "stale").is_displayed()
    cluster.restart(follower)
    cluster.wait_until_level()
    complaints(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_and_say_what_is_under_the_pointer(cluster: LocalCluster, browser: Any, scheme: str) -> None:
    """Each chart has axes and a line, in the colours of the page, and stays while the page is made fresh."""
    scheme_is = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_is)
    try:
        with Client(cluster.servers) as client:
            client.put("mail", b"x")
            for path in ("/", "/queue?name=mail"):
                browser.get(f"http://{cluster.http(cluster.names[0])}{path}")
                charts = browser.find_elements(By.CSS_SELECTOR, "figure.chart")
                wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".chart canvas")) == len(charts), "drawn")  # noqa: B023
                canvas = browser.find_element(By.CSS_SELECTOR, ".chart canvas")
                assert browser.execute_script(DRAWN_PIXELS, canvas) > 0
                point_at(browser, canvas)
                wait(lambda: browser.find_element(By.CSS_SELECTOR, ".chart h3 small").text, "the time of the pointer")
                point_at(browser, browser.find_element(By.TAG_NAME, "nav"))
                state = browser.find_element(By.ID, "content").text
                client.put("mail", b"x")
                wait(lambda: browser.find_element(By.ID, "content").text != state, "fresh")     # noqa: B023
                assert browser.find_element(By.CSS_SELECTOR, ".chart canvas") == canvas
                picture(browser, f"charts_{scheme}{'_queue' if 'queue' in path else ''}")
                assert complaints(browser) == [], path
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_events_are_told_as_they_happen(cluster: LocalCluster, browser: Any) -> None:
    browser.get(f"http://{cluster.http(cluster.wait_for_leader())}/events-live")
    why = browser.find_element(By.ID, "no-events")
    assert not why.is_displayed() or "Nothing has happened since this page was opened" in why.text
    with Client(cluster.servers) as client:
        wait(lambda: client.put("told", b"x") and "PUT told" in text(browser), "told")
        assert not why.is_displayed()
        assert "PUT PUT" not in text(browser)
        wanted = browser.find_element(By.ID, "events-with")
        wanted.send_keys("another")
        wait(lambda: "events has this in its line" in why.text, "it is said that no line has the word")
        wait(lambda: "PUT told" not in text(browser), "other lines are hidden, those that were there too")
        wait(lambda: client.put("another", b"x") and "PUT another" in text(browser), "those with the word are shown")
        press(browser, "Pause")
        seen = browser.find_element(By.ID, "events").text
        wait(lambda: client.put("another", b"x") and " not shown" in text(browser), "events are only counted")
        assert browser.find_element(By.ID, "events").text == seen
    picture(browser, "events")
    assert complaints(browser) == []


def test_it_fits_a_phone(cluster: LocalCluster, browser: Any) -> None:
    phone = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        for path in (*PAGES, "/queue?name=mail", "/job?queue=mail&key=k1", "/topics?name=news"):
            browser.get(f"http://{cluster.http(cluster.names[0])}{path}")
            width = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert width <= 0, path
            picture(browser, f"{path.strip('/').partition('?')[0] or 'overview'}_400")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    complaints(browser)             # of /queue and /job without a name


def test_the_keyboard_does_not_lose_its_place_when_the_page_is_made_fresh(cluster: LocalCluster, browser: Any) -> None:
    browser.get(f"http://{cluster.http(cluster.wait_for_leader())}/queues")
    for _ in range(6):          # to a link among the pages
        ActionChains(browser).send_keys(Keys.TAB).perform()
    active = browser.switch_to.active_element
    name = active.text
    assert active.get_attribute("href")
    with Client(cluster.servers) as client:
        client.put("keyboard", b"x")
    wait(lambda: "keyboard" in browser.find_element(By.ID, "content").text, "the page is fresh")
    assert browser.switch_to.active_element == active
    assert active.text == name


def test_the_pages_are_a_menu_on_a_phone_which_stays_open_while_the_page_is_made_fresh(
    cluster: LocalCluster, browser: Any,
) -> None:
    phone = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.get(f"http://{cluster.http(cluster.wait_for_leader())}/queues")
        assert not browser.execute_script("return document.getElementById('pages').checkVisibility()")
        press(browser, "Menu")
        entry = browser.find_element(By.CSS_SELECTOR, "#pages a[href='/groups']")
        assert entry.is_displayed()
        with Client(cluster.servers) as client:
            client.put("menu", b"x")
        browser.execute_script(
            "window.heard = 0; new EventSource('/live').onmessage = () => { window.heard += 1; };")
        wait(lambda: browser.execute_script("return window.heard") > 4, "the page has heard of it as often")
        assert entry.is_displayed()
        assert "menu" not in browser.find_element(By.ID, "content").text
        picture(browser, "menu_400")
        entry.click()
        wait(lambda: browser.current_url.endswith("/groups"), "it leads to the page")
        assert complaints(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
