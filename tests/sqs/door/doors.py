"""A door in a thread of the test, with a small engine behind it, and clients that send arbitrary bytes."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import botocore.awsrequest
import botocore.credentials
from sockpq_sqs.auth import OpenGate, Users, UsersGate, Verifier
from sockpq_sqs.call import Call
from sockpq_sqs.door import Door
from sockpq_sqs.model.answers import Nothing, QueueUrlAnswer, SendMessageAnswer
from sockpq_sqs.options import DEFAULT_ACCOUNT
from sockpq_sqs.settings import Settings, read

SECRET = "a-secret-of-the-shop-0123456789"
PATIENCE_S = 60


class SmallEngine:
    """Answers some actions, and remembers every call."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.cancelled = 0
        self.answer_bytes = 0           # of a body that GetQueueUrl answers with
        self.failure: Exception | None = None

    async def handle(self, call: Call) -> Any:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
        if call.action == "SendMessage":
            return SendMessageAnswer(md5_of_message_body="m", message_id="1")
        if call.action == "GetQueueUrl":
            return QueueUrlAnswer(queue_url="u" * self.answer_bytes + "/" + call.request.queue_name)
        if call.action == "ReceiveMessage":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return Nothing()


class FewClients:
    """Clients of users, without any cluster."""

    def __init__(self) -> None:
        self.own = SimpleNamespace(cluster_id=self._cluster_id, name="own")
        self.ready = True

    def of(self, name: str, account: Any) -> Any:
        return SimpleNamespace(name=name)

    async def _cluster_id(self, timeout: float) -> None:
        if not self.ready:
            from sockpq import Unavailable
            raise Unavailable("no server answers")


class RunningDoor:
    """A door on a free port of loopback, until the end of the block."""

    def __init__(self, users: Path | None = None, **sections: dict[str, Any]) -> None:
        sections.setdefault("http", {}).setdefault("listen", "127.0.0.1:0")
        if users is not None:
            sections["users"] = {"file": str(users)}
        self.settings: Settings = read(sections)
        self.users = None if users is None else Users(users)
        self.engine = SmallEngine()
        self.clients = FewClients()
        self.door: Door = None  # type: ignore[assignment]
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ending = asyncio.Event()
        self._opened = threading.Event()

    def __enter__(self) -> RunningDoor:
        self._thread.start()
        assert self._opened.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Close the door, as at SIGTERM."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def begin_to_end(self) -> None:
        self.loop.call_soon_threadsafe(self._ending.set)

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread of the door."""
        async def run() -> Any:
            return function()
        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.door.port}"

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.door.port), timeout=PATIENCE_S)

    def _run(self) -> None:
        async def serve() -> None:
            if self.users is None:
                gate: Any = OpenGate(self.clients, DEFAULT_ACCOUNT, "us-east-1")
            else:
                gate = UsersGate(
                    self.users, self.clients, Verifier(self.users), DEFAULT_ACCOUNT, in_cluster=True)
            self.door = Door(self.settings, gate, self.engine.handle, self.clients.own, self._refresh)
            await self.door.open()
            self._opened.set()
            await self._ending.wait()
            await self.door.close()
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(serve())

    def _refresh(self) -> None:
        if self.users is not None:
            self.users.refresh()


def users_file(folder: Path, secret: str = SECRET) -> Path:
    """Write a users file with the user `shop`."""
    path = folder / "users.toml"
    path.write_text(f'[users.shop]\nsecret = "{secret}"\naccount = "111122223333"\n')
    path.chmod(0o600)
    return path


Answer = tuple[int, dict[str, str], bytes]


def ask(
    url: str, method: str = "POST", body: bytes = b"", headers: dict[str, str] | None = None, *,
    key: str | None = "shop", secret: str = SECRET, presigned: bool = False,
) -> Answer:
    """Send one request, signed unless `key` is None; return status, headers in lower case, and body."""
    request = botocore.awsrequest.AWSRequest(method, url, data=body, headers=dict(headers or {}))
    if key is not None:
        kind = botocore.auth.SigV4QueryAuth if presigned else botocore.auth.SigV4Auth
        kind(botocore.credentials.Credentials(key, secret), "sqs", "eu-west-1").add_auth(request)
    prepared = request.prepare()
    return send(prepared.url, method, body, dict(prepared.headers.items()))


def send(url: str, method: str, body: bytes, headers: dict[str, str]) -> Answer:
    """Send a request as it is."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_S)
    try:
        connection.request(method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def json_headers(action: str) -> dict[str, str]:
    return {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
