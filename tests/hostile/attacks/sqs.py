"""The program sockpq-sqs between hostile clients and the cluster."""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import trustme

from tests.hostile import network
from tests.hostile.arena import Arena, say
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.program import Program, Served, free_door, running

KEY, SECRET = "shop", "a-secret-of-the-shop-0123456789"
TIMEOUT_S = 2
PLACES = 400
SILENT = 250
BODIES = 150
ADDRESSES = 3               # from which handshakes come that do not end,
HANDSHAKES = 300            # so many at a time,
OTHER_FILES = 400           # beside which the program has these: its own, and what is accepted in a turn
STRANGERS = 30              # of each kind, which come again at once
USERS = 6                   # of each kind
AGAIN_S = 0.02
SAY_S = 10.0
MEMORY_MIB = 64
FORM = "application/x-www-form-urlencoded"
JSON = "application/x-amz-json-1.0"
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=100)


def signed(
    door: str, body: bytes = b"{}", *, kind: str = JSON, action: str = "ListQueues", key: str = KEY,
    secret: str = SECRET, age: timedelta = timedelta(), close: bool = False,
) -> bytes:
    """A request as an SDK sends it."""
    request = botocore.awsrequest.AWSRequest(
        "POST", f"http://{door}/", data=body,
        headers={"Content-Type": kind, **({"X-Amz-Target": f"AmazonSQS.{action}"} if kind == JSON else {})})
    now = datetime.now(UTC) - age
    with patch.object(botocore.auth, "get_current_datetime", lambda *_, **__: now):
        botocore.auth.SigV4Auth(botocore.credentials.Credentials(key, secret), "sqs", "us-east-1").add_auth(request)
    headers = {**dict(request.headers.items()), "Host": door, "Content-Length": str(len(body))}
    if close:
        headers["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body


async def _list_queues(door: str) -> bytes:
    """Be an ordinary client; returns what is wrong with the answer."""
    answer = await say(door, signed(door, close=True), SAY_S)
    return b"" if answer.startswith(b"HTTP/1.1 200") else answer[:200] or b"nothing"


@asynccontextmanager
async def program(
    arena: Arena, served: Served = _list_queues, more: Mapping[str, str] | None = None,
) -> AsyncIterator[Program]:
    """The program before the arena's cluster, with one user. `more`: of its environment."""
    door = free_door()
    with tempfile.TemporaryDirectory() as folder:
        users = Path(folder, "users.toml")
        users.touch(0o600)
        users.write_text(f'[users.{KEY}]\nsecret = "{SECRET}"\n')
        limits = {"CONNECTIONS_MAX": PLACES, "MEMORY_MIB": MEMORY_MIB, "HELLO_TIMEOUT_S": TIMEOUT_S,
                  "REQUEST_TIMEOUT_S": TIMEOUT_S}
        environment = {f"SOCKPQ_SQS_LIMITS_{name}": str(value) for name, value in limits.items()}
        command = [sys.executable, "-m", "sockpq_sqs.main", "--listen", door, "--servers",
                   ",".join(arena.cluster.servers), "--users", str(users)]
        async with running(arena, door, command, served,
                           {**environment, "SOCKPQ_SQS_USERS_IN_CLUSTER": "false", **(more or {})}) as found:
            yield found


async def halves(arena: Arena) -> None:
    """Silent connections take all places, and others leave half a head, or a body that does not end."""
    async with program(arena) as sqs, AsyncExitStack() as stack:
        whole = signed(sqs.door, b" " * MIB)
        crowds = [
            await stack.enter_async_context(Crowd(sqs.door, count, opening=opening))
            for count, opening in ((SILENT, b""), (SILENT, whole[:100]), (BODIES, whole[:-1]))]
        await asyncio.sleep(max(arena.seconds, TIMEOUT_S + 4.0))
        for crowd, count in zip(crowds, (SILENT, SILENT, BODIES), strict=True):
            arena.expect(crowd.cut + crowd.refused >= count, f"{crowd.cut} of {count} connections were cut off")


async def handshakes(arena: Arena) -> None:
    """Connections for TLS that say nothing take all places again and again, from addresses that are not loopback's."""
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def greet(door: str) -> bytes:
        host, _, port = door.rpartition(":")
        try:
            async with asyncio.timeout(SAY_S):
                reader, writer = await asyncio.open_connection(host, int(port), ssl=trusting)
                try:
                    writer.write(signed(door, close=True))
                    answer = await reader.read()
                finally:
                    writer.transport.abort()
        except OSError as error:
            return repr(error).encode()
        return b"" if answer.startswith(b"HTTP/1.1 200") else answer[:200] or b"nothing"

    with tempfile.TemporaryDirectory() as folder:
        issued, cert, key = authority.issue_cert("127.0.0.1"), Path(folder, "cert.pem"), Path(folder, "key.pem")
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.touch(0o600)
        key.write_bytes(issued.private_key_pem.bytes())
        tls = {"SOCKPQ_SQS_TLS_CERT": str(cert), "SOCKPQ_SQS_TLS_KEY": str(key)}
        async with program(arena, greet, tls) as sqs, AsyncExitStack() as stack:
            crowds = [
                await stack.enter_async_context(
                    Crowd(sqs.door, HANDSHAKES, source=network.stranger(number), again_s=AGAIN_S))
                for number in range(ADDRESSES)]
            most, until = 0, asyncio.get_running_loop().time() + arena.seconds
            while asyncio.get_running_loop().time() < until:
                most = max(most, sqs.descriptors())
                await asyncio.sleep(AGAIN_S)
            arena.expect(most < PLACES + OTHER_FILES, f"the program had {most} files open for {PLACES} places")
            arena.note(f"{sum(crowd.made for crowd in crowds)} connections, {most} files")


async def strangers(arena: Arena) -> None:
    """Floods of requests that nobody has signed, or with a wrong secret, or long ago, or as an unknown user."""
    async with program(arena) as sqs, AsyncExitStack() as stack:
        door = sqs.door
        floods = [
            b"POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length: 2\r\n\r\n{}",
            signed(door, b" " * MIB, secret="not-the-secret-0123456789"), signed(door, age=timedelta(hours=1)),
            signed(door, key="nobody"), signed(door).replace(b"Signature=", b"Signature=0"),
        ]
        crowds = [await stack.enter_async_context(Crowd(door, STRANGERS, opening=flood, again_s=AGAIN_S))
                  for flood in floods]
        await asyncio.sleep(arena.seconds)
        arena.expect(not any(crowd.good for crowd in crowds), "a stranger was served")
        arena.note(f"{sum(crowd.made for crowd in crowds)} requests")


async def forms(arena: Arena) -> None:
    """A user sends what is costly to decode: many parameters, deep names, deep and long JSON, endless headers."""
    async with program(arena) as sqs, AsyncExitStack() as stack:
        door = sqs.door
        entry = b'{"Id":"a","MessageBody":"b"}'
        parameters = b"&".join(b"a.%d.b=%%41" % number for number in range(1900))
        floods = [
            signed(door, b"a=1&" * MIB, kind=FORM), signed(door, b"a." * MIB + b"=1", kind=FORM),
            signed(door, b"Action=ListQueues&" + parameters, kind=FORM),
            signed(door, b'{"x":' + b"[" * 3 * MIB), signed(door, b'{"x":[' + b"1," * MIB + b"1]}"),
            signed(door, b'{"QueueUrl":"q","Entries":[' + entry + (b"," + entry) * 100_000 + b"]}",
                   action="SendMessageBatch"),
            b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 100_000,
        ]
        for flood in floods:
            await stack.enter_async_context(Crowd(door, USERS, repeated=flood, again_s=AGAIN_S))
        await asyncio.sleep(arena.seconds)


ATTACKS = (
    Attack("sqs-halves", "650 connections to sockpq-sqs, which has 400 places, say nothing, or half of something",
           halves, bounds=BOUNDS),
    Attack("sqs-handshakes", "900 handshakes with sockpq-sqs, which has 400 places, do not end, and come again at once",
           handshakes, strangers=ADDRESSES, bounds=BOUNDS),
    Attack("sqs-strangers", "floods of requests to sockpq-sqs with wrong, old and no signatures", strangers,
           bounds=BOUNDS),
    Attack("sqs-forms", "a user of sockpq-sqs sends forms and JSON that are costly to decode", forms, bounds=BOUNDS),
)
