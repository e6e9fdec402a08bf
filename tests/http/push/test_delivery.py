"""Jobs on their way to good receivers, at a real node."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import trustme
from sockpq import BadArguments, Number
from sockpq.aio import Client
from sockpq_http.push.configuration import read
from sockpq_http.push.pusher import Pusher

from tests.http.push.receivers import (
    Request,
    answer,
    answer_bytes,
    counted,
    one_after_the_other,
    pushing,
    receiver,
    soon,
    target,
)

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OLD_SECRET = "whsec_" + base64.b64encode(bytes(range(24))).decode()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


async def jobs_of(client: Client, queue: str) -> dict[str, int]:
    """Return the counts of a queue by state; {} when it has none."""
    for one in await client.queues():
        if one.name == queue:
            return {"ready": one.ready, "delayed": one.delayed, "running": one.running, "dead": one.dead}
    return {}


async def gone(client: Client, queue: str) -> bool:
    """Return whether the queue has no job."""
    return not any((await jobs_of(client, queue)).values())


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def test_a_job_is_sent_with_its_headers_and_is_done(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(answer(204)) as seen,
            pushing(address, a=target(seen.url, headers={"Authorization": "Bearer x"})) as (pusher, client),
        ):
            stored = await client.put(
                "hooks", b'{"a": 1}', number=True, key="k1", item="i1", group="g1",
                headers={"content-type": "application/json", "x-tenant": "ann", "authorization": "forged",
                         "host": "forged", "webhook-id": "forged", "sockpq-id": "forged", "content-length": "99"},
            )
            await soon(lambda: gone(client, "hooks"))
            (request,) = seen.requests
            assert (request.path, request.body) == ("/hook", b'{"a": 1}')
            headers = request.headers
            assert headers.pop("user-agent").startswith("sockpq-http/")
            assert headers.pop("host") == f"127.0.0.1:{seen.port}"
            assert int(headers.pop("sockpq-id")) > 0
            assert headers == {
                "content-type": "application/json", "x-tenant": "ann", "authorization": "Bearer x",
                "content-length": "8", "accept": "*/*", "accept-encoding": "identity",
                "sockpq-queue": "hooks", "sockpq-number": str(stored.number), "sockpq-try": "1", "sockpq-key": "k1",
                "sockpq-item": "i1", "sockpq-group": "g1",
            }
            assert counted(pusher, outcome="done", reason="http_204", target="a") == 1
            assert pusher.ready
    run(main())


def test_many_jobs_arrive_once_each_over_few_connections(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(answer(200)) as seen,
            pushing(address, a=target(seen.url, concurrency=8)) as (pusher, client),
        ):
            await client.put_many("hooks", [b"%d" % number for number in range(500)])
            await soon(lambda: gone(client, "hooks"))
            assert sorted(map(int, seen.bodies)) == list(range(500))
            assert seen.connections < 100
            assert counted(pusher, "request_seconds_count") == 500
    run(main())


def test_a_request_is_signed_with_each_secret(address: str, tmp_path: Path) -> None:
    async def main() -> None:
        secrets = tmp_path / "secrets"
        secrets.write_text(f"{SECRET}\n{OLD_SECRET}\n")
        secrets.chmod(0o600)
        async with (
            receiver(one_after_the_other(answer(500), answer(200))) as seen,
            pushing(address, a=target(seen.url, secret_file=str(secrets))) as (_, client),
        ):
            stored = await client.put("hooks", b"body", number=True)
            await soon(lambda: gone(client, "hooks"))
            first, second = seen.requests
            for request in (first, second):
                headers = request.headers
                assert headers["webhook-id"] == f"job_{stored.number}"      # the same at each attempt
                assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
                signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + b"body"
                assert headers["webhook-signature"].split(" ") == [
                    "v1," + base64.b64encode(hmac.digest(base64.b64decode(one[6:]), signed, hashlib.sha256)).decode()
                    for one in (SECRET, OLD_SECRET)
                ]
            assert (first.headers["sockpq-try"], second.headers["sockpq-try"]) == ("1", "2")
    run(main())


def test_the_answer_is_the_result_of_the_job(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(one_after_the_other(answer(200, body=b"sent"), answer(200, body=b"x" * 100))) as seen,
            pushing(address, a=target(seen.url, result=True, answer_bytes_max=50, concurrency=1)) as (pusher, client),
        ):
            await client.queue_create("hooks", retain=600)
            numbers = [(await client.put("hooks", b"1", number=True)).number for _ in range(2)]
            assert None not in numbers
            ends = [await client.await_job(Number(number), wait=60) for number in numbers if number]
            assert [end and (end.state, end.data) for end in ends] == [("done", b"sent"), ("done", b"")]
            assert counted(pusher, outcome="done", reason="result_too_long") == 1
    run(main())


def test_a_result_that_the_queue_does_not_take_is_left_out(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(answer(200, body=b"x" * 100)) as seen,
            pushing(address, a=target(seen.url, result=True)) as (_, client),
        ):
            await client.queue_create("hooks", retain=600, data_bytes_max=10)
            number = (await client.put("hooks", b"1", number=True)).number
            assert number
            end = await client.await_job(Number(number), wait=60)
            assert end
            assert (end.state, end.data) == ("done", b"")
    run(main())


def test_a_status_of_bury_gives_the_job_up_with_the_answer_as_its_error(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(answer(422, body=b"no such order")) as seen,
            pushing(address, a=target(seen.url, bury=[422])) as (_, client),
        ):
            number = (await client.put("hooks", b"1", number=True)).number
            assert number
            end = await client.await_job(Number(number), wait=60)
            assert end
            assert (end.state, end.text) == ("dead", "the receiver answered 422\n\nno such order")
            assert await client.peek_queue("hooks", "dead")
            assert len(seen.requests) == 1
    run(main())


def test_a_job_that_fails_comes_back_by_the_backoff_of_its_queue(address: str) -> None:
    async def main() -> None:
        async with (
            receiver(answer(404, body=b"gone")) as seen,
            pushing(address, a=target(seen.url)) as (_, client),
        ):
            await client.queue_create("hooks", tries=3, backoff=(0.2, 3600))
            number = (await client.put("hooks", b"1", number=True)).number
            assert number

            end = await client.await_job(Number(number), wait=60)
            assert end
            assert end.state == "dead"
            assert [request.headers["sockpq-try"] for request in seen.requests] == ["1", "2", "3"]
            assert await client.job_error(Number(number)) == "the receiver answered 404\n\ngone"
    run(main())


def test_a_receiver_that_asks_for_a_rest_has_it(address: str) -> None:
    times: list[float] = []

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        writer.write(answer_bytes(429, {"Retry-After": "2"}) if len(times) == 1 else answer_bytes(200))

    async def main() -> None:
        async with receiver(behave) as seen, pushing(address, a=target(seen.url, concurrency=1)) as (pusher, client):
            await client.put_many("hooks", [b"1", b"2"])
            await soon(lambda: gone(client, "hooks"))
            assert times[1] - times[0] >= 1.9           # also the job that it has not seen yet
            assert counted(pusher, outcome="later", reason="http_429") == 1
            assert counted(pusher, "rests_total") == 1
    run(main())


def test_one_group_rests_and_the_others_go_on(address: str) -> None:
    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        busy = request.headers["sockpq-group"] == "ann"
        writer.write(answer_bytes(503, {"Retry-After": "3600"}) if busy else answer_bytes(200))

    async def main() -> None:
        async with Client(address) as client:
            await client.queue_create("hooks", sched="groups", backoff=(60, 60))
            await client.put_many("hooks", [b"a1", b"a2", b"a3"], group="ann")
            await client.put_many("hooks", [b"b1", b"b2", b"b3"], group="bert")
            async with receiver(behave) as seen, pushing(address, a=target(seen.url, concurrency=1)) as (pusher, _):
                await soon(lambda: counted(pusher, outcome="done") == 3)
                assert counted(pusher, "rests_total") == 0
                assert [body for body in seen.bodies if body[:1] == b"a"] == [b"a1"]
    run(main())


def test_a_dead_target_holds_up_no_other_and_is_tried_again(address: str) -> None:
    async def main() -> None:
        port = free_port()
        dead = target(f"http://127.0.0.1:{port}/", "dead", failures=2, pause_max_s=1)
        async with receiver(answer(200)) as seen, pushing(address, a=target(seen.url), dead=dead) as (pusher, client):
            await client.put_many("dead", [b"%d" % number for number in range(30)])
            await soon(lambda: counted(pusher, "rests_total", target="dead") >= 2)
            await client.put_many("hooks", [b"%d" % number for number in range(30)])
            await soon(lambda: gone(client, "hooks"))
            failed = counted(pusher, outcome="later", reason="connect", target="dead")
            assert failed <= 10 + counted(pusher, "rests_total", target="dead")     # at first all places, then one
            server = await asyncio.start_server(_ok, "127.0.0.1", port)
            await soon(lambda: gone(client, "dead"))
            server.close()
            assert counted(pusher, outcome="done", target="dead") == 30
    run(main())


async def _ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


def test_jobs_that_wait_while_the_target_begins_to_rest_are_not_attempts(address: str) -> None:
    async def main() -> None:
        async with Client(address) as client:
            await client.put_many("hooks", [b"%d" % number for number in range(10)])
            async with receiver(answer(429, {"Retry-After": "3600"})) as seen, pushing(
                address, a=target(seen.url), push={"host_concurrency": 1}
            ) as (pusher, _):
                await soon(lambda: counted(pusher, outcome="unsent", reason="resting") == 9)
                assert seen.bodies == [b"0"]

                async def all_are_back() -> bool:
                    found = await client.peek_queue("hooks", "ready", 10)
                    return [(job.data, job.attempt) for job in found] == [(b"%d" % one, 0) for one in range(1, 10)]

                await soon(all_are_back)
    run(main())


def test_requests_to_a_host_are_limited_for_all_targets_together(address: str) -> None:
    now = most = 0
    full = asyncio.Event()

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        now -= 1
        writer.write(answer_bytes(200))

    async def main() -> None:
        async with receiver(behave) as seen, pushing(
            address, a=target(seen.url, "a"), b=target(seen.url, "b"), push={"hosts": {"127.0.0.1": 3}}
        ) as (_, client):
            await client.put_many("a", [b"x"] * 10)
            await client.put_many("b", [b"x"] * 10)
            await soon(lambda: len(seen.requests) == 20)
            assert most == 3
    run(main())


def test_each_request_takes_a_turn_of_the_pulse(address: str) -> None:
    async def main() -> None:
        async with Client(address) as client, receiver(
            one_after_the_other(answer(429), answer(500), answer(200))
        ) as seen:
            await client.pulse_create("partner", rate=100, per=1)
            async with pushing(address, a=target(seen.url, pulse="partner", concurrency=1)):
                await client.put_many("hooks", [b"1", b"2", b"3"])
                await soon(lambda: gone(client, "hooks"))
                stat = await client.pulse_stat("partner")
                assert (stat["granted"], stat["errors"]) == (5, 2)
    run(main())


def test_without_its_pulse_a_target_rests_and_no_attempt_is_counted(address: str) -> None:
    async def main() -> None:
        async with receiver(answer(200)) as seen, pushing(
            address, a=target(seen.url, pulse="missing", failures=1)
        ) as (pusher, client):
            await client.put("hooks", b"1")
            await soon(lambda: counted(pusher, outcome="unsent", reason="turn"))
            assert not seen.requests
            await client.pulse_create("missing")
            await soon(lambda: gone(client, "hooks"))
            assert [request.headers["sockpq-try"] for request in seen.requests] == ["1"]
    run(main())


def test_jobs_that_wait_for_a_turn_go_back_when_the_program_stops(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Client(address) as client, receiver(answer(200)) as seen:
            await client.pulse_create("partner", rate=1, per=3600)
            await client.put_many("hooks", [b"1", b"2", b"3"])
            async with pushing(address, a=target(seen.url, pulse="partner")) as (pusher, _):
                await soon(lambda: counted(pusher, outcome="done"))

                async def both_wait() -> bool:
                    return (await client.pulse_stat("partner"))["waiting"] == 2

                await soon(both_wait)
            assert "cut off" not in caplog.text
            left = [job.data for job in await client.peek_queue("hooks", "ready", 10)]
            assert sorted(left + seen.bodies) == [b"1", b"2", b"3"]
            assert len(seen.bodies) == 1
    run(main())


def test_a_lease_of_the_queue_does_not_end_while_the_receiver_works(address: str) -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
            await ended.wait()
            writer.write(answer_bytes(200))

        async with Client(address) as client, receiver(behave) as seen:
            await client.queue_create("hooks", expire=600)
            async with pushing(address, a=target(seen.url)):
                await client.put("hooks", b"1")
                await soon(lambda: seen.requests)
                (job,) = await client.peek_queue("hooks", "running")
                assert job.expires_at is None
                ended.set()
                await soon(lambda: gone(client, "hooks"))
    run(main())


def test_a_pusher_that_stops_finishes_what_is_in_flight(address: str) -> None:
    async def main() -> None:
        async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.2)
            writer.write(answer_bytes(200))

        async with Client(address) as client, receiver(behave) as seen:
            await client.put_many("hooks", [b"%d" % number for number in range(20)])
            async with pushing(address, a=target(seen.url, concurrency=4)) as (pusher, _):
                await soon(lambda: len(seen.requests) >= 4)
                pusher.stop()
                assert not pusher.ready
            done = len(seen.requests)
            assert await jobs_of(client, "hooks") == {"ready": 20 - done, "delayed": 0, "running": 0, "dead": 0}
    run(main())


def test_what_does_not_end_in_time_is_cut_off_and_goes_back_to_its_place(address: str) -> None:
    async def never(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with Client(address) as client, receiver(never) as seen:
            await client.put_many("hooks", [b"1", b"2", b"3"])
            async with pushing(address, a=target(seen.url, concurrency=2), push={"stop_s": 0.1}) as (pusher, _):
                await soon(lambda: len(seen.requests) == 2)
                pusher.stop()
            assert [job.data for job in await client.peek_queue("hooks", "ready", 10)] == [b"1", b"2", b"3"]
    run(main())


def test_a_name_that_no_queue_can_have_ends_the_program(address: str) -> None:
    async def main() -> None:
        async with Client(address) as client:
            await Pusher(read({"targets": {"a": target("http://127.0.0.1:1/", "no such name!")}}), client).run()

    with pytest.raises(BadArguments, match="no such name!"):
        run(main())


def test_tls_and_host_are_for_the_name_while_the_address_is_pinned(address: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    names: list[str] = []

    async def lookup(host: str) -> list[str]:
        return ["127.0.0.1"]

    def context(name: str) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(name).configure_cert(made)
        made.sni_callback = lambda socket, found, _: names.append(found)
        return made

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(answer_bytes(200, {"Connection": "close"}))
        await writer.drain()
        writer.close()

    async def main() -> None:
        good = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context("hooks.example.com"))
        other = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context("other.example.com"))
        port, other_port = (one.sockets[0].getsockname()[1] for one in (good, other))
        url = "https://hooks.example.com:{}/"
        async with pushing(
            address, lookup, ca=target(url.format(port), "a", ca_file=str(tmp_path / "ca.pem")),
            name=target(url.format(other_port), "b", ca_file=str(tmp_path / "ca.pem")),
            system=target(url.format(port), "c"),
        ) as (pusher, client):
            await client.put("a", b"")
            await soon(lambda: gone(client, "a"))
            assert names[0] == "hooks.example.com"
            assert f"host: hooks.example.com:{port}\r\n" in names[1]
            for queue, name in (("b", "name"), ("c", "system")):
                await client.put(queue, b"")
                await soon(lambda name=name: counted(pusher, outcome="later", reason="tls", target=name))
        good.close()
        other.close()
    run(main())


def test_no_proxy_of_the_environment_is_used(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")

    async def main() -> None:
        async with receiver(answer(200)) as seen, pushing(address, a=target(seen.url)) as (_, client):
            await client.put("hooks", b"1")
            await soon(lambda: gone(client, "hooks"))
            assert seen.bodies == [b"1"]
    run(main())


def test_a_proxy_of_the_configuration_gets_all_requests(address: str) -> None:
    async def main() -> None:
        async with receiver(answer(200)) as proxy, pushing(
            address, push={"proxy": f"http://127.0.0.1:{proxy.port}"},
            a={"queues": ["hooks"], "url": "http://hooks.example.com/path"},
        ) as (_, client):
            await client.put("hooks", b"1")
            await soon(lambda: gone(client, "hooks"))
            (request,) = proxy.requests
            assert (request.path, request.headers["host"]) == ("http://hooks.example.com/path", "hooks.example.com")
    run(main())


def test_a_large_job_is_sent_whole(address: str) -> None:
    async def main() -> None:
        body = bytes(range(256)) * 12_000
        async with receiver(answer(200)) as seen, pushing(address, a=target(seen.url)) as (_, client):
            await client.put("hooks", body)
            await soon(lambda: gone(client, "hooks"))
            assert seen.bodies == [body]
            assert seen.requests[0].headers["content-length"] == str(len(body))
    run(main())
