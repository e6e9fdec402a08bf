"""The page of one job: what happened to it, its error and its result."""

from __future__ import annotations

import re

from tests.gateway.helpers.dashboard import Site, run


def moments(page: str) -> list[str]:
    """Return the lines of the job's history."""
    found = re.search(r'<ol class="timeline">(.*?)</ol>', page)
    assert found is not None
    return [re.sub(r"<[^>]*>", "", line) for line in re.findall(r"<li>(.*?)</li>", found[1])]


def test_what_happened_to_a_numbered_job_is_shown_in_its_order_with_its_error() -> None:
    async def test(found: Site) -> None:
        number = (await found.say(b"PUT mail 0 3 NUMBER\r\nabc")).split()[-1].decode()
        path = f"/job?queue=mail&number={number}"
        assert moments(await found.get(path)) == ["just now: put"]
        for at, end in enumerate((b"LATER %s", b"LATER %s", b"BURY %s HERE REASON Timeout ERROR 9"), start=1):
            found.cluster.now_ms += 60_000
            assert "earlier ones are not kept" not in await found.get(path)
            taken = (await found.say(b"GET mail EXPIRE 30\r\n")).split()[3]
            if at == 2:
                page = await found.get(path)
                assert any("its lease ends" in line for line in moments(page))
            await found.say(end % taken + b"\r\n" + (b"<trace&k>" if at == 3 else b""))
        page = await found.get(path)
        assert len(moments(page)) == 4
        assert moments(page)[0] == "3 min ago: put"
        assert moments(page)[1].endswith("handed out for the first time")
        assert moments(page)[2].endswith("handed out for the last time, of 3")
        assert moments(page)[3].endswith("died of Timeout")
        assert "put back 2 times, buried once. The reason and the error are from the last attempt" in page
        assert "&lt;trace&amp;k&gt;" in page
        assert "<trace" not in page

    run(test)


def test_a_job_that_has_ended_is_shown_with_its_result_and_without_actions() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 600\r\n")
        number = (await found.say(b"PUT mail 0 3 NUMBER\r\nabc")).split()[-1].decode()
        taken = (await found.say(b"GET mail EXPIRE 30\r\n")).split()[3]
        found.cluster.now_ms += 5000
        await found.say(b"DONE %s RESULT 5\r\n<sum>" % taken)
        page = await found.get(f"/job?number={number}")
        assert moments(page)[-1].endswith("ended: done")
        assert "&lt;sum&gt;" in page
        assert "job.delete" not in page

    run(test)


def test_a_dead_job_without_number_is_shown_at_its_place_with_its_error() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 3\r\nabcGET mail\r\nBURY 1 REASON Timeout ERROR 5\r\ntrace")
        listed = re.search(r'href="/job[?](queue=mail_dead&amp;seq=[0-9]+)"', await found.get("/queue?name=mail"))
        assert listed is not None
        page = await found.get("/job?" + listed[1].replace("&amp;", "&"))
        assert "trace</pre>" in page
        assert "Timeout" in page
        assert "abc</pre>" in page

    run(test)


def test_a_job_that_is_dead_or_has_ended_is_retried() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 600\r\nPUT mail 0 1 KEY k\r\nxGET mail\r\nBURY 1 REASON bad\r\n")
        page = await found.get("/job?queue=mail_dead&key=k")
        assert '<span class="badge dead">dead</span> It died of <strong>bad</strong>' in page
        assert "died in" in page
        seq = re.search(r'name="seq" value="([0-9]+)"', page)
        assert seq is not None
        status, to, _ = await found.act("job.retry", queue="mail_dead", seq=seq[1])
        assert status == 303
        assert f"KICK JOB SEQ mail_dead {seq[1]}: 200 OK 1" in await found.get(to)
        number = (await found.say(b"PUT mail 9 1 NUMBER\r\nx")).split()[-1].decode()
        await found.say(b"GET mail\r\nDONE 2\r\n")
        page = await found.get(f"/job?number={number}")
        assert "job.delete" not in page
        assert 'name="ended" value="yes"' in page
        status, to, _ = await found.act("job.retry", number=number, ended="yes")
        assert f"KICK JOB NUMBER {number} ENDED: 200 OK 1" in await found.get(to)
        assert "job.retry" not in await found.get(f"/job?number={number}")

    run(test)


def test_a_job_that_was_retried_keeps_its_counts_and_says_what_is_lost() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail NUMBERED 1\r\nPUT mail 0 3 KEY k\r\nabc")
        shown = re.search("<dt>number</dt><dd>([0-9]+)<", await found.get("/job?queue=mail&key=k"))
        assert shown is not None
        number = shown[1]
        path = f"/job?queue=mail&number={number}"
        found.cluster.now_ms += 60_000
        await found.say(b"GET mail\r\nLATER 1\r\nGET mail\r\nBURY 2 REASON Timeout\r\n")
        assert moments(await found.get(path))[-1].endswith("died of Timeout")
        found.cluster.now_ms += 60_000
        seq = re.search(r'name="seq" value="([0-9]+)"', await found.get(path))
        assert seq is not None
        status, _, _ = await found.act("job.retry", queue="mail_dead", seq=seq[1])
        assert status == 303
        page = await found.get(path)
        assert moments(page)[0] == "2 min ago: put"
        assert moments(page)[-2].endswith("handed out for the last time, of 2")
        assert moments(page)[-1] == "just now: took its place in the queue again"
        assert "0 attempts since it was retried, 2 in all, put back once, buried once, retried once. A retry" in page
        assert "of what it died before is not kept" in page

    run(test)


def in_short(page: str) -> str:
    """Return the sentence at the top of the page."""
    found = re.search(r'<p class="lead">(.*?)</p>', page)
    assert found is not None
    return re.sub(r"<[^>]*>", "", found[1])


def test_the_state_of_a_job_and_its_reason_are_said_in_a_sentence() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 600\r\n")
        number = (await found.say(b"PUT mail 0 3 NUMBER\r\nabc")).split()[-1].decode()
        path = f"/job?number={number}"

        async def says(*lines: bytes) -> str:
            for line in lines:
                await found.say(line)
            return in_short(await found.get(path))

        assert await says() == "ready It waits for a worker."
        assert await says(b"GET mail\r\n") == "running It runs: attempt 1."
        assert await says(b"LATER 1 DELAY 60 REASON slow\r\n") == \
            "delayed It becomes ready in 60 s, after 1 attempt. The last attempt failed of slow."
        found.cluster.now_ms += 61_000
        assert await says(b"PUT tick 0 1\r\nx") == \
            "ready It waits for a worker, after 1 attempt. The last attempt failed of slow."
        assert await says(b"GET mail\r\n") == "running It runs: attempt 2. The last attempt failed of slow."
        assert await says(b"BURY 2 REASON bad\r\n") == "dead It died of bad just now, after 2 attempts."
        assert '<p class="above"><a href="/queue?name=mail">Queue mail</a></p>' in await found.get(path)
        assert await says(b"GET mail_dead\r\n", b"BURY 3 HERE\r\n") == \
            "buried It was buried because of bad just now, after 3 attempts."
        number = (await found.say(b"PUT mail 0 3 NUMBER\r\nabc")).split()[-1].decode()
        await found.say(b"GET mail\r\nDONE 4\r\n")
        assert in_short(await found.get(f"/job?number={number}")) == "done It ended just now, after 1 attempt."

    run(test)


def test_a_job_that_runs_in_the_session_of_a_worker_names_it() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        client = await found.gateway.connect()
        for line in (b"SESSION\r\n", b"WORKER w1 2 1\r\n", b"GET mail EXPIRE 60 BOUND\r\n"):
            client.send(line)
            assert (await client.line()).startswith(b"200 OK"), line
        assert '<dt>worker</dt><dd><a href="/workers">w1</a>' in await found.get("/job?id=1")
        await found.say(b"PUT mail 0 1\r\nxGET mail EXPIRE 60\r\n")         # in no session
        assert "<dt>worker</dt>" not in await found.get("/job?id=2")

    run(test)
