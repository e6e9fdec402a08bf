"""The samples of the last hour, and the pictures of them."""

from __future__ import annotations

import re

from sockpqd.gateway.dashboard.history import EVERY_S, SAMPLES, FigureHistory
from sockpqd.gateway.dashboard.pages.parts.picture import POINTS, pictures
from tests.gateway.helpers.dashboard import Site, run


def test_it_is_of_an_hour_and_forgets_queues_that_are_gone() -> None:
    async def test(found: Site) -> None:
        history = FigureHistory()
        assert history.of("mail") is None
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1 DELAY 600\r\nx")
        for _ in range(SAMPLES + 5):
            await history.sample(found.cluster)
        samples = history.of("mail")
        assert samples is not None
        assert [len(samples.waiting), len(samples.oldest_s), len(samples.put), len(samples.done)] == [SAMPLES] * 4
        assert samples.waiting[-1] == 2
        await found.say(b"QUEUE DELETE mail FORCE\r\n")
        await history.sample(found.cluster)
        assert history.of("mail") is None

    run(test)


def test_rates_are_of_the_time_of_each_sample() -> None:
    async def test(found: Site) -> None:
        history = FigureHistory()
        await found.say(b"PUT mail 0 1\r\nx")
        await history.sample(found.cluster)         # what was before the node began to look counts nowhere
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxPUT new 0 1\r\nxGET mail\r\nDONE 1\r\n")
        found.cluster.now_ms += 7000
        await history.sample(found.cluster)
        await history.sample(found.cluster)
        mail, new = history.of("mail"), history.of("new")
        assert mail is not None
        assert new is not None
        assert (list(mail.put), list(mail.done), list(mail.waiting)) == ([0, 2, 0], [0, 1, 0], [1, 2, 2])
        assert mail.oldest_s[-1] >= 6
        assert list(new.put) == [1, 0]
        await found.say(b"QUEUE DELETE new FORCE\r\nPUT new 0 1\r\nx")       # the counters begin anew
        await history.sample(found.cluster)
        assert history.of("new") is new
        assert list(new.put) == [1, 0, 0]

    run(test)


def test_the_pictures_are_read_aloud_and_have_few_points() -> None:
    async def test(found: Site) -> None:
        history = FigureHistory()
        assert [str(one) for one in pictures(history, "mail")] == ["", "", ""]
        for number in range(SAMPLES):
            await found.say(b"PUT mail 0 1\r\nx" * (number % 3))
            await history.sample(found.cluster)
        rates, waiting, oldest = pictures(history, "mail")
        assert f"put now {2 / EVERY_S:.1f}, at most {2 / EVERY_S:.1f} per second" in rates
        assert rates.count("<polyline") == 2
        assert f"waiting now {SAMPLES}, at most {SAMPLES}" in waiting
        assert "the oldest waits" in oldest
        points = re.search(r'points="([^"]*)"', waiting)
        assert points is not None
        assert len(points[1].split()) == POINTS
        assert points[1].startswith("120,1 ")           # the newest and greatest, at the right and the top

    run(test)
