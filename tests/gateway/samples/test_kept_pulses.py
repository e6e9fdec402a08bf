"""The series of pulses: their contents, and which pulses have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sockpqd.gateway.samples import kept_pulses
from tests.gateway.helpers.dashboard import Site, Users, run
from tests.gateway.samples.test_sampler import sampler


def test_grants_results_and_pauses_are_sampled_as_rates() -> None:
    async def test(found: Site) -> None:
        samples = found.samples
        await found.say(b"PULSE CREATE api RATE 10\r\n")
        await samples.pulses.sample(found.cluster, 100)
        for _ in range(4):
            await found.say(b"PULSE WAIT api\r\n")
        await samples.pulses.sample(found.cluster, 102)
        await samples.pulses.sample(found.cluster, 102)         # a sample that comes early changes nothing
        row = samples.pulses.courses["api"].now()
        assert (row["granted"], row["errors"], row["now"], row["pause"]) == (2.0, 0.0, 10.0, 0.0)
        page = await found.get("/pulses?name=api")
        assert 'data-fields="granted errors"' in page
        status, _, rows = await found.ask("GET", "/figures?of=pulse&name=api&span=10m")
        assert (status, "granted" in rows) == (200, True)
        assert "no pulse nope" in await found.get("/pulses?name=nope", 404)
        await found.say(b"PULSE DELETE api\r\n")
        await samples.pulses.sample(found.cluster, 103)
        assert not samples.pulses.courses
        assert (await found.ask("GET", "/figures?of=pulse&name=api"))[0] == 404

    run(test)


def test_a_limited_number_of_pulses_has_a_course(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        monkeypatch.setattr(kept_pulses, "KEPT_MAX", 2)
        for name in (b"a", b"b", b"c"):
            await found.say(b"PULSE CREATE %s RATE 10\r\n" % name)
        await found.samples.pulses.sample(found.cluster, 100)
        assert set(found.samples.pulses.courses) == {"a", "b"}
        assert "<h2>Figures</h2>" in await found.get("/pulses?name=c")

    run(test)


def test_the_courses_survive_a_restart(tmp_path: Path) -> None:
    async def test(found: Site) -> None:
        await found.say(b"PULSE CREATE api RATE 7\r\n")
        before = sampler(found, tmp_path / "samples")
        await before.sample()
        await before.save()
        after = sampler(found, tmp_path / "samples")
        await after.load()
        assert after.pulses.courses["api"].now()["now"] == 7.0

    run(test)


def test_who_has_no_right_to_a_pulse_sees_neither_its_page_nor_its_figures() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PULSE CREATE api RATE 7\r\n")
        await found.samples.pulses.sample(found.cluster, 100)
        found.user = "max"
        await found.get("/pulses?name=api", 403)
        assert (await found.ask("GET", "/figures?of=pulse&name=api"))[0] == 404

    run(test, Users())
