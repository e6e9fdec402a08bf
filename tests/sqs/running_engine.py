"""An engine in an event loop of its own thread, before a real gateway in memory, whose time the test lets pass."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import msgspec
from sockpq import aio
from sockpq_sqs.call import Call, User
from sockpq_sqs.engine import Engine
from sockpq_sqs.model import ACTIONS
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.options import DEFAULT_ACCOUNT, Options

from tests.client.real_server import RealServer

ORIGIN = "http://queues.test"
LIMIT_S = 120


class RunningEngine:
    """Executes requests: `engine("SendMessage", QueueUrl=url, MessageBody="hello")["MessageId"]`.

    Requests and answers have the names and types of JSON, but bytes for values of type Binary.
    """

    def __init__(self, server: RealServer, options: Options | None = None) -> None:
        self.server = server
        self.call: dict[str, Any] = {}          # what calls have besides: trace, invocation, account
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = self._wait(self._started())
        self._engine = Engine(self._client, options, lambda: server.cluster.now_ms / 1000)
        self._wait(self._engine.__aenter__())

    async def _started(self) -> aio.Client:
        return aio.Client(self.server.address, timeout=60)

    def __call__(self, action: str, /, **members: Any) -> Any:
        """Execute a request and wait for its answer. Raises SqsError."""
        return self.start(action, **members).result(LIMIT_S)

    def start(self, action: str, /, **members: Any) -> Future[Any]:
        """Execute a request; when its future is cancelled the client has hung up."""
        return asyncio.run_coroutine_threadsafe(self._handle(action, members), self._loop)

    async def _handle(self, action: str, members: dict[str, Any]) -> Any:
        request = msgspec.convert(members, ACTIONS[action].request)
        told = {"account": DEFAULT_ACCOUNT, "region": "eu-west-1", "origin": ORIGIN, **self.call}
        answer = await self._engine.handle(Call(action, request, User(None, self._client), **told))
        assert type(answer) is ACTIONS[action].answer
        return msgspec.to_builtins(answer, builtin_types=(bytes,))

    def refused(self, action: str, /, **members: Any) -> SqsError:
        """Execute a request that must fail; returns its error."""
        try:
            answer = self(action, **members)
        except SqsError as error:
            return error
        raise AssertionError(f"no error, but {answer}")

    def client(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the cluster's client."""
        async def called() -> Any:
            return await getattr(self._client, method)(*arguments, **options)
        return self._wait(called())

    # short forms

    def queue(self, name: str = "orders", **attributes: Any) -> str:
        """Create a queue, by its name a FIFO queue or not; returns its URL."""
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
        url: str = self("CreateQueue", QueueName=name, Attributes=given)["QueueUrl"]
        return url

    def send(self, url: str, body: str = "body", **more: Any) -> Any:
        """Send a message."""
        return self("SendMessage", QueueUrl=url, MessageBody=body, **more)

    def put(self, url: str, body: str, group: str = "g", dedup: str | None = None, **more: Any) -> Any:
        """Send a message to a FIFO queue; without `dedup` its body is its deduplication id."""
        return self.send(url, body, MessageGroupId=group, MessageDeduplicationId=dedup or body, **more)

    def receive(self, url: str, count: int = 10, **more: Any) -> list[Any]:
        """Receive up to `count` messages."""
        found: list[Any] = self("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=count, **more).get("Messages", [])
        return found

    def bodies(self, url: str, count: int = 10, **more: Any) -> list[str]:
        """Receive messages; returns their bodies."""
        return [message["Body"] for message in self.receive(url, count, **more)]

    def one(self, url: str, **more: Any) -> Any:
        """Receive the only message that there is."""
        (message,) = self.receive(url, **more)
        return message

    def attributes(self, url: str, *names: str) -> dict[str, str]:
        """Read attributes of a queue, all of them without names."""
        answer = self("GetQueueAttributes", QueueUrl=url, AttributeNames=list(names) or ["All"])
        found: dict[str, str] = answer.get("Attributes", {})
        return found

    def arn(self, url: str) -> str:
        """Return the ARN of a queue."""
        return self.attributes(url, "QueueArn")["QueueArn"]

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LIMIT_S)

    def __enter__(self) -> RunningEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wait(self._engine.__aexit__(None, None, None))
        self._wait(self._client.close())
        self._wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()
