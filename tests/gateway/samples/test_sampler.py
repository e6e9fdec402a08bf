"""Samples of each second: their content, the queues that are kept, and their survival of a restart."""

from __future__ import annotations

import zlib
from itertools import count
from math import isnan
from pathlib import Path

import pytest
from msgspec import structs

from sockpqd.cluster import Histogram
from sockpqd.gateway.monitoring import LoopLag
from sockpqd.gateway.samples import FigureSampler, kept_queues, sample_file
from sockpqd.gateway.samples.cluster_figures import Difference
from sockpqd.gateway.samples.course import QUEUE_FIELDS, SHORT, FigureSeries
from sockpqd.gateway.samples.flows import Flows, QueueRates
from sockpqd.gateway.samples.kept_queues import WANTED_S, KeptQueues
from sockpqd.gateway.samples.oldest import QUEUES_PER_LOOK, Oldest
from tests.gateway.helpers.dashboard import Site, run

NOW_S = 1_800_000_000


def sampler(found: Site, path: Path | None = None, now_s: float = NOW_S) -> FigureSampler:
    """Return a sampler whose clock stands still."""
    made = FigureSampler(found.hub, LoopLag(), path, lambda: now_s)
    made.flows = Flows(count().__next__)        # a second from one look to the next
    return made


def test_a_sample_has_the_jobs_of_the_cluster_and_dead_ones_do_not_wait() -> None:
    async def test(found: Site) -> None:
        samples = sampler(found)
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxPUT mail 0 1 DELAY 60\r\nxPUT w 0 1\r\nxGET mail\r\n"
                        b"GET w\r\nBURY 2\r\n")
        found.cluster.now_ms += 7000
        await samples.sample()
        now = samples.cluster.now()
        assert (now["waiting"], now["delayed"], now["running"], now["dead"], now["buried"]) == (1, 1, 1, 1, 0)
        assert now["oldest"] is not None
        assert 6 <= now["oldest"] <= 8
        assert now["put"] is None               # before the second look at the flows nothing is known
        await samples.look()
        await found.say(b"PUT mail 0 1\r\nx")
        await samples.look()
        await samples.sample()
        rate = samples.cluster.now()["put"]
        assert rate is not None
        assert rate > 0
        node = samples.node.now()
        assert node["connections"] is not None
        assert node["commit_p50"] is None       # nothing was committed in this second

    run(test)


def test_the_queues_that_are_busy_or_looked_at_have_a_course() -> None:
    async def test(found: Site) -> None:
        samples = sampler(found)
        await found.say(b"PUT mail 0 1\r\nxPUT other 0 1\r\nx")
        assert samples.queue("other") is None or isnan(samples.queue("other").rings[0].values[0])   # type: ignore[union-attr]
        samples.flows.of, samples.flows.total = {"mail": QueueRates(put=5.0)}, QueueRates(put=5.0)
        await samples.sample()
        mail, other = samples.queue("mail"), samples.queue("other")
        assert mail is not None
        assert other is not None
        assert (mail.now()["put"], mail.now()["waiting"]) == (5, 1)
        assert (other.now()["put"], other.now()["waiting"]) == (0, 1)

    run(test)


def test_a_queue_that_is_looked_at_takes_the_place_of_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_queues, "KEPT_MAX", 3)
    kept = KeptQueues()
    kept.busy({f"busy{number}": QueueRates(put=number + 1) for number in range(3)}, NOW_S)
    assert set(kept.courses) == {"busy0", "busy1", "busy2"}
    kept.look("mine", NOW_S + 1)
    assert "mine" in kept.courses
    assert len(kept.courses) == 3
    for later in range(2, 200):
        kept.busy({"late": QueueRates(put=100)}, NOW_S + later)
    assert "late" not in kept.courses           # the others were busy minutes ago
    kept.busy({"late": QueueRates(put=100)}, NOW_S + 200 + WANTED_S)
    assert "late" in kept.courses
    assert "mine" in kept.courses               # it goes last


def test_the_oldest_job_of_all_queues_is_found_and_dead_ones_are_not_old() -> None:
    async def test(found: Site) -> None:
        oldest = Oldest()
        await found.say(b"QUEUE CREATE mail TRIES 3 DEAD morgue\r\n")
        await found.say(b"PUT old 0 1\r\nxPUT quiet_dead 0 1\r\nxPUT morgue 0 1\r\nx")
        found.cluster.now_ms += 8000
        await found.say(b"".join(b"PUT q%d 0 1\r\nx" % number for number in range(2 * QUEUES_PER_LOOK)))
        found.cluster.now_ms += 1000
        for _ in range(4):
            await oldest.look(found.cluster)
        assert oldest.longest[0][1] == "old"
        assert not {"quiet_dead", "morgue"} & {name for _, name in oldest.longest}
        await found.say(b"QUEUE PURGE old ALL\r\n")
        await oldest.look(found.cluster)
        assert oldest.longest[0][1] != "old"

    run(test)


def test_a_dead_letter_queue_is_not_old_in_any_round_after_the_first() -> None:
    async def test(found: Site) -> None:
        oldest = Oldest()
        await found.say(b"QUEUE CREATE mail TRIES 3 DEAD morgue\r\n")
        for name in (b"morgue", b"mail", b"last"):      # each is looked at a while after the one before it
            await found.say(b"".join(b"PUT before_%s%d 0 1\r\nx" % (name, at) for at in range(QUEUES_PER_LOOK + 10)))
            await found.say(b"PUT %s 0 1\r\nx" % name)
            found.cluster.now_ms += 1000
        for look in range(15):                  # a round takes four
            await oldest.look(found.cluster)
            assert look < 5 or "morgue" not in {name for _, name in oldest.longest}

    run(test)


def test_a_queue_that_settings_name_no_longer_is_a_queue_as_others_are() -> None:
    async def test(found: Site) -> None:
        oldest = Oldest()
        await found.say(b"QUEUE CREATE mail TRIES 3 DEAD morgue\r\nPUT morgue 0 1\r\nx")
        found.cluster.now_ms += 8000
        for _ in range(4):
            await oldest.look(found.cluster)
        assert oldest.longest == []
        assert await found.say(b"QUEUE CONFIG mail TRIES 3 DEAD vault\r\n") == b"200 OK\r\n"
        for _ in range(4):                      # rounds through all queues
            await oldest.look(found.cluster)
        assert [name for _, name in oldest.longest] == ["morgue"]
        await found.say(b"QUEUE CONFIG mail TRIES 3 DEAD morgue\r\n")
        await oldest.look(found.cluster)
        assert oldest.longest == []

    run(test)


def test_samples_survive_a_restart(tmp_path: Path) -> None:
    async def test(found: Site) -> None:
        path = tmp_path / "samples"
        samples = sampler(found, path)
        samples.queue("mail")
        await found.say(b"PUT mail 0 1\r\nx")
        await samples.sample()
        await samples.stop()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.stat().st_size < 100_000
        later = sampler(found, path, NOW_S + 30)
        await later.load()
        assert later.cluster.now()["waiting"] == 1
        assert later.cluster.known_s(NOW_S + 30) == 30
        mail = later.queue("mail")
        assert mail is not None
        assert mail.now()["waiting"] == 1
        assert mail.window(NOW_S + 30, 60, 60).values["waiting"] == [None] * 29 + [1] + [None] * 30

    run(test)


def test_it_is_known_since_when_a_course_has_rows(tmp_path: Path) -> None:
    course, row = FigureSeries(QUEUE_FIELDS, SHORT), [1.0] * len(QUEUE_FIELDS)
    assert course.known_s(NOW_S) == 0
    course.add(NOW_S, row)
    course.add(NOW_S + 90, row)
    assert course.known_s(NOW_S + 90) == 90
    course.add(NOW_S - 5000, row)           # the clock was set back, and what was there is gone
    assert course.known_s(NOW_S - 4900) == 100
    sample_file.save(tmp_path / "samples", {"a": course})
    older = structs.replace(sample_file.load(tmp_path / "samples")["a"], first_s=0)     # files of 1.0.0rc1 lack it
    again = FigureSeries(QUEUE_FIELDS, SHORT)
    assert sample_file.fill(again, older)
    assert again.known_s(NOW_S - 4900) == 100


@pytest.mark.parametrize("harm", ["torn", "another version", "empty", "no course", "a folder"])
def test_a_damaged_file_is_ignored(tmp_path: Path, harm: str) -> None:
    path, course = tmp_path / "samples", FigureSeries(QUEUE_FIELDS, SHORT)
    course.add(NOW_S, [1.0] * len(QUEUE_FIELDS))
    sample_file.save(path, {"queue mail": course})
    assert sample_file.load(path).keys() == {"queue mail"}
    data = path.read_bytes()
    content = zlib.compress(b"\0\0\0\5hello")
    whole = {
        "torn": data[:-1], "another version": data.replace(b"samples 1", b"samples 2"), "empty": b"",
        "no course": sample_file.MAGIC + content,
    }
    if harm == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(whole[harm])
    assert sample_file.load(path) == {}


def test_a_flipped_bit_is_found_unless_it_makes_no_difference(tmp_path: Path) -> None:
    path, course = tmp_path / "samples", FigureSeries(QUEUE_FIELDS, SHORT)
    course.add(NOW_S, [float(place) for place in range(len(QUEUE_FIELDS))])
    sample_file.save(path, {"queue mail": course})
    data, whole = path.read_bytes(), sample_file.load(path)
    found = []
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        found.append(sample_file.load(path))
    assert all(one in ({}, whole) for one in found)
    assert found.count({}) > len(found) // 2


def test_a_course_of_other_fields_begins_again(tmp_path: Path) -> None:
    path, course = tmp_path / "samples", FigureSeries(QUEUE_FIELDS, SHORT)
    course.add(NOW_S, [1.0] * len(QUEUE_FIELDS))
    sample_file.save(path, {"a": course})
    stored = sample_file.load(path)["a"]
    for other in (
        FigureSeries(QUEUE_FIELDS[:-1], SHORT), FigureSeries(QUEUE_FIELDS),
        FigureSeries(QUEUE_FIELDS, ((1, 600), (20, 2160))),
    ):
        assert not sample_file.fill(other, stored)
        assert other.last_s == 0
    assert sample_file.fill(FigureSeries(QUEUE_FIELDS, SHORT), stored)


def test_quantiles_are_of_what_was_counted_since() -> None:
    histogram = Histogram((1.0, 2.0, 4.0))
    histogram.observe(3.0)
    new = Difference(histogram)
    assert isnan(new.quantiles(0.5)[0])
    for _ in range(10):
        histogram.observe(1.5)
    assert new.quantiles(0.5, 1.0) == [1.5, 2.0]
    histogram.observe(100.0)
    assert new.quantiles(1.0) == [4.0]
