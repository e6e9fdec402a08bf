"""One request and its answer, in the protocol in which the request came."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msgspec import Struct

from sockpq_sqs.model import ACTIONS, Action
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.wire import json_protocol, query_form, query_xml
from sockpq_sqs.wire.faults import no_action, unknown_action

METHODS = ("GET", "POST")


class Document(NamedTuple):
    """An answer in the form in which it is sent."""

    status: int
    content_type: str
    body: bytes
    query_error: str | None = None      # the header x-amzn-query-error, which SDKs need beside errors in JSON


class Exchange(Protocol):
    """A request that is being answered; `action` is None until it has been decoded."""

    action: Action | None

    def decode(self, body: bytes) -> tuple[Action, Struct]:
        """Decode the request. Raises SqsError."""

    def answer(self, answer: Struct) -> Document:
        """Encode the answer to the action that was decoded."""

    def error(self, error: SqsError) -> Document:
        """Encode an error, even one of a request that was not decoded."""


def exchange_of(
    method: str, query: str, target: str | None, content_type: str, queue_url: str | None, request_id: str,
) -> Exchange:
    """Return the exchange for a request.

    `target` and `content_type` are the headers X-Amz-Target and Content-Type; `queue_url` is the URL of the queue to
    which the request was sent, None for another one.
    """
    if target is not None or content_type.startswith(json_protocol.CONTENT_TYPE):
        return JsonExchange(target or "")
    return QueryExchange(method, query, queue_url, request_id)


class JsonExchange:
    """A request in JSON."""

    def __init__(self, target: str) -> None:
        self.action: Action | None = None
        self._target = target

    def decode(self, body: bytes) -> tuple[Action, Struct]:
        """See Exchange."""
        self.action = action = json_protocol.action_of(self._target)
        return action, json_protocol.decode(action, body)

    def answer(self, answer: Struct) -> Document:
        """See Exchange."""
        return Document(200, json_protocol.CONTENT_TYPE, json_protocol.encode(answer))

    def error(self, error: SqsError) -> Document:
        """See Exchange."""
        query_error = f"{error.query_code};{'Sender' if error.sender_fault else 'Receiver'}"
        return Document(error.status, json_protocol.CONTENT_TYPE, json_protocol.encode_error(error), query_error)


class QueryExchange:
    """A request in the Query protocol: a form, or parameters in the URL, or both."""

    def __init__(self, method: str, query: str, queue_url: str | None, request_id: str) -> None:
        self.action: Action | None = None
        self._method = method
        self._query = query
        self._queue_url = queue_url
        self._request_id = request_id

    def decode(self, body: bytes) -> tuple[Action, Struct]:
        """See Exchange. By GET the URL of a queue takes only actions on that queue."""
        texts = [self._query] if self._query else []
        if self._method != "GET":
            texts.append(body.decode("utf-8", "replace"))       # a form is ASCII; what it escapes must be UTF-8
        given = query_form.parameters("&".join(texts))
        name = given.pop("Action", None)
        if name is None:
            raise no_action()
        self.action = action = ACTIONS.get(name)
        if action is None:
            raise unknown_action(name)
        if self._method == "GET" and self._queue_url is not None and not query_form.is_of_queue(action):
            raise unknown_action(name)
        return action, query_form.decode(action, given, self._queue_url)

    def answer(self, answer: Struct) -> Document:
        """See Exchange."""
        assert self.action is not None
        return Document(200, query_xml.CONTENT_TYPE, query_xml.encode(self.action, answer, self._request_id))

    def error(self, error: SqsError) -> Document:
        """See Exchange."""
        body = query_xml.UNKNOWN_OPERATION if error.status == 404 and self.action is None else (
            query_xml.encode_error(error, self._request_id))
        return Document(error.status, query_xml.CONTENT_TYPE, body)
