"""A dashboard that only shows: no page has a form that changes anything, and none is carried out."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from sockpqd.gateway.config.reading import read
from sockpqd.gateway.daemon import with_dashboard
from sockpqd.gateway.dashboard.site import PAGES
from tests.gateway.dashboard.test_dead import kill
from tests.gateway.helpers.dashboard import Site, run


def test_no_page_has_an_action_and_none_is_carried_out() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1 IS it KEY k GROUP ann\r\nxGROUP CONFIG ann LIMIT 1\r\nTOPIC BIND news mail\r\n")
        await kill(found, "sums", "a", "b")
        for path in (*PAGES, "/queue?name=mail", "/job?queue=mail&key=k", "/items?name=it", "/groups?name=ann",
                     "/topics?name=news", "/jobs?queues=*"):
            if path in ("/queue", "/job"):
                continue
            page = await found.get(path)
            assert 'method="post"' not in page, path
            assert "<summary>" not in page, path
            assert ">Actions<" not in page, path
        status, _, text = await found.ask("POST", "/act", urlencode({"action": "queue.create", "queue": "new"}))
        assert (status, "only shows" in text) == (403, True)
        assert b"new" not in await found.say(b"QUEUE LIST\r\n")

    run(test, read_only=True)


@pytest.mark.parametrize(("written", "shown"), [(None, True), (True, True), (False, False), ("read", True)])
def test_the_option_switches_it_on_and_off(written: bool | str | None, shown: bool) -> None:
    listen = {"client": "127.0.0.1:1", "peer": "127.0.0.1:2", "http": "127.0.0.1:3"}
    if written is not None:
        listen["dashboard"] = written       # type: ignore[assignment]
    config = read({
        "node": {"name": "n1", "data_dir": "/var/lib/x"}, "listen": listen,
        "cluster": {"members": [{"name": "n1", "client": "127.0.0.1:1", "peer": "127.0.0.1:2"}]},
    }, {})
    assert with_dashboard(config) is shown


def test_it_is_read_from_the_environment() -> None:
    config = read({
        "node": {"name": "n1", "data_dir": "/var/lib/x"},
        "listen": {"client": "127.0.0.1:1", "peer": "127.0.0.1:2", "http": "127.0.0.1:3"},
        "cluster": {"members": [{"name": "n1", "client": "127.0.0.1:1", "peer": "127.0.0.1:2"}]},
    }, {"SOCKPQD_LISTEN_DASHBOARD": "read"})
    assert config.listen.dashboard == "read"
