"""The rows of a series as JSON for the script that draws charts, and the charts of the pages."""

from __future__ import annotations

import json
import re

import pytest

from sockpqd.gateway.dashboard.figures import ROWS_MAX
from sockpqd.gateway.dashboard.pages.parts.chart import SPANS
from sockpqd.gateway.dashboard.pages.parts.picture import amount
from sockpqd.gateway.samples import CLUSTER_FIELDS, NODE_FIELDS, QUEUE_FIELDS
from tests.gateway.helpers.dashboard import Site, run


def test_charts_ask_for_figures_that_are_there() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        found.samples.queue("mail")
        await found.samples.sample()
        for path, fields in (("/", (*CLUSTER_FIELDS, *NODE_FIELDS)), ("/queue?name=mail", QUEUE_FIELDS)):
            page = await found.get(path)
            charts = re.findall(r'data-figures="([^"]*)" data-fields="([^"]*)" data-labels="([^"]*)"', page)
            assert len(charts) >= 4
            for source, names, labels in charts:
                assert set(names.split()) <= {field.name for field in fields}
                assert len(labels.split("|")) == len(names.split())
                status, headers, body = await found.ask("GET", source.replace("&amp;", "&"))
                assert (status, headers["Content-Type"]) == (200, "application/json")
                rows = json.loads(body)
                assert set(names.split()) <= set(rows["values"])
        assert 1 in rows["values"]["waiting"][-3:]
        assert len(rows["times"]) == len(rows["values"]["waiting"])

    run(test)


@pytest.mark.parametrize("span", SPANS)
def test_each_span_goes_as_far_back_as_it_says(span: str) -> None:
    async def test(found: Site) -> None:
        _, _, body = await found.ask("GET", f"/figures?of=cluster&span={span}")
        rows = json.loads(body)
        covered = rows["step_s"] * len(rows["times"])
        assert SPANS[span][1] <= covered < SPANS[span][1] + rows["step_s"]
        assert len(rows["times"]) <= ROWS_MAX
        assert [later - time for time, later in zip(rows["times"], rows["times"][1:], strict=False)] == \
            [rows["step_s"]] * (len(rows["times"]) - 1)

    run(test)


def test_other_figures_are_not_there() -> None:
    async def test(found: Site) -> None:
        for words in ("", "of=nothing", "of=cluster&span=2y", "of=node&span="):
            status, headers, _ = await found.ask("GET", f"/figures?{words}")
            assert status == 404, words
            assert headers["Content-Type"].startswith("text/plain")

    run(test)


def test_a_young_node_shows_ten_minutes_and_an_older_one_an_hour() -> None:
    async def test(found: Site) -> None:
        await found.samples.sample()
        assert 'aria-current="true">10 minutes</a>' in await found.get("/")
        now_s = found.samples.now_s
        for before_s in range(700, 600, -1):
            found.samples.cluster.add(now_s - before_s, [0.0] * len(CLUSTER_FIELDS))
        assert 'aria-current="true">hour</a>' in await found.get("/")
        assert 'aria-current="true">day</a>' in await found.get("/?span=1d")

    run(test)


@pytest.mark.parametrize(("value", "unit", "shown"), [
    (None, "rate", "-"), (0.0, "rate", "0/s"), (0.034, "rate", "0.03/s"), (3.14, "rate", "3.1/s"),
    (1234.0, "rate", "1,234/s"), (90.0, "seconds", "90 s"), (1 << 20, "bytes", "1.0 MiB"), (2.25, "ms", "2.2 ms"),
    (250.0, "ms", "250 ms"), (12.6, "percent", "13%"), (48211.0, "count", "48,211"), (0.4, "count", "0.4"),
    (3.0, "count", "3"),
])
def test_a_figure_has_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown
