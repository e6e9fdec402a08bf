"""`result_backend = "sockpq://host:11361/vhost"`: results in the same cluster as the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakSet

from celery import states
from celery.backends.asynchronous import AsyncBackendMixin
from celery.backends.base import BaseKeyValueStoreBackend
from celery.canvas import maybe_signature
from celery.exceptions import ChordError
from celery.result import GroupResult, allow_join_result
from celery.utils.log import get_logger
from kombu import Connection
from kombu.utils.encoding import bytes_to_str, ensure_bytes
from sockpq import Aborted, JobNotFound, OutcomeUnknown, SockpqError, Unavailable

from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.background.outbox import Outbox
from sockpq_kombu.channels.collected import collect
from sockpq_kombu.client import client_of
from sockpq_kombu.link import Link
from sockpq_kombu.mapping.addresses import access_of
from sockpq_kombu.mapping.names import prefix_of
from sockpq_kombu.results.chords import PARTS_MAX, Chords
from sockpq_kombu.results.store import Store
from sockpq_kombu.results.waiting import ResultConsumer

logger = get_logger(__name__)

CHORD_S = 86_400.0
FLUSH_S = 30.0                          # how long the end of an app waits for results that were not stored yet
TOLD_BYTES_MAX = 1024 * 1024 - 4096     # of a message; larger results are fetched by those that wait


class ResultBackend(BaseKeyValueStoreBackend, AsyncBackendMixin):
    """Stores results as jobs with a key and a time to live; the parts of a chord are jobs of an item."""

    ResultConsumer = ResultConsumer
    supports_autoexpire = True
    supports_native_join = True
    persistent = True
    key_t = bytes_to_str
    tls = False
    connection_errors = (Unavailable, OutcomeUnknown, OSError)

    def __init__(self, app: Any, url: str | None = None, expires: Any = None, **kwargs: Any) -> None:
        super().__init__(app, expires_type=int, expires=expires, url=url, **kwargs)
        connection = Connection(url or "sockpq://", ssl=app.conf.get("broker_use_ssl") if self.tls else False)
        self._access = access_of(connection, self.tls)
        self._options = app.conf.get("result_backend_transport_options") or {}
        self._prefix = prefix_of(connection.virtual_host, self._options.get("queue_prefix", ""))
        self._open()
        self._outbox = Outbox("sockpq results of the event loop", _not_kept)
        self.result_consumer = self.ResultConsumer(
            self, self.app, self.accept, self._pending_results, self._pending_messages,
        )
        _opened.add(self)

    def _open(self) -> None:
        """Make a client, which connects on first use."""
        self.client = client_of(self._access, self._options)
        self.store = Store(self.client, self._prefix)
        self.chords = Chords(self.client, self._prefix)

    def close(self) -> None:
        """Close its connections, after pending results are stored. If it is used again, it opens new ones."""
        self.result_consumer.stop()
        if not self._outbox.flush(FLUSH_S):
            logger.warning("%d results could not be stored in time", len(self._outbox))
        closed = self.client
        self._open()
        closed.close()

    # values

    def get(self, key: str) -> bytes | None:
        """Return the value of a key."""
        return self.store.get(key)

    def mget(self, keys: list[str]) -> list[bytes | None]:
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    def set(self, key: str, value: Any) -> None:
        """Store a value, for as long as results are kept."""
        self.store.set(key, ensure_bytes(value), self.expires)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def _store_result(self, task_id: str, result: Any, state: str, traceback: Any = None, request: Any = None,
                      **kwargs: Any) -> Any:
        """Store a result; as in Celery, no other state follows success. Waiting clients are notified.

        In an event loop, as for tasks that are revoked or time out, it is stored in the background.
        """
        self._do(lambda: self._keep(task_id, result, state, traceback, request))
        return result

    def _keep(self, task_id: str, result: Any, state: str, traceback: Any, request: Any) -> None:
        if self._get_task_meta_for(task_id)["status"] == states.SUCCESS:
            return
        value = self._encoded(task_id, result, state, traceback, request)
        self.set(self.get_key_for_task(task_id), value)
        self._tell(request, state, value)

    def _encoded(self, task_id: str, result: Any, state: str, traceback: Any, request: Any) -> bytes:
        meta = self._get_result_meta(result=result, state=state, traceback=traceback, request=request)
        value: bytes = ensure_bytes(self.encode({**meta, "task_id": bytes_to_str(task_id)}))
        return value

    def _tell(self, request: Any, state: str, value: bytes) -> None:
        """Notify the program that waits for the result, if any."""
        waiter = getattr(request, "reply_to", None)
        if waiter and state in states.READY_STATES and len(value) <= TOLD_BYTES_MAX:
            try:
                self.store.tell(waiter, value)
            except SockpqError as error:
                logger.info("a result was stored, but nobody was notified of it: %s", error)

    def _do(self, call: Callable[[], None]) -> None:
        if must_not_block():
            self._outbox.call(call)
        else:
            call()

    # chords

    @property
    def _chord_s(self) -> float:
        """Return the number of seconds for which the parts of a chord are kept."""
        return float(getattr(self, "chord_expires", None) or CHORD_S)       # Celery has this setting since 5.7

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        """Register all parts, before the first one is sent; keep the structure of a header that contains groups."""
        header = self.app.GroupResult(*header_result_args)
        results = list(header.results or ())
        parts = list(_ids(results))
        if len(parts) > PARTS_MAX or any(isinstance(one, GroupResult) for one in results):
            self._save_group(header.id, header)
        self.chords.open(header.id, parts, self._chord_s)

    def add_to_chord(self, chord_id: str, result: Any) -> None:
        """Register one more part, which a part of the chord has called."""
        self.chords.add(chord_id, _ids([result]))

    def on_chord_part_return(self, request: Any, state: str, result: Any, propagate: Any = None, **kwargs: Any) -> None:
        """Record the end of a part; after the last one call the body, once."""
        if request.group and request.id:
            self._do(lambda: self._part_ended(request, state, result))

    def mark_as_done(self, task_id: str, result: Any, request: Any = None, store_result: bool = True,
                     state: str = states.SUCCESS) -> None:
        """Store the result of a task; for a part of a chord, the transaction that ends the part stores it."""
        if store_result and request and request.chord and request.group and not request.ignore_result:
            self._do(lambda: self._part_done(task_id, result, state, request))
        else:
            super().mark_as_done(task_id, result, request=request, store_result=store_result, state=state)

    def _part_done(self, task_id: str, result: Any, state: str, request: Any) -> None:
        encoded = self.encode_result(result, state)
        value = self._encoded(task_id, encoded, state, None, request)
        if len(value) > TOLD_BYTES_MAX:     # a transaction has not much more room than a result
            self._keep(task_id, encoded, state, None, request)
            self._part_ended(request, state, result)
        else:
            self._part_ended(request, state, result, value)

    def _part_ended(self, request: Any, state: str, result: Any, stored: bytes | None = None) -> None:
        """End a part, and store its result with it if there is one, as a registered part has none yet."""
        group, key = request.group, self.get_key_for_task(request.id)
        index = request.group_index if request.group_index is not None else 0
        part = ensure_bytes(self.encode([index, request.id, state, self.encode_result(result, state)]))
        try:
            complete = self.chords.end(group, request.id, part, None if stored is None else lambda transaction: (
                self.store.set_by(transaction, key, stored, self.expires)
            ))
        except JobNotFound:     # it has returned before, and who was to call the body then may have died
            if stored is not None:
                self._keep(request.id, self.encode_result(result, state), state, None, request)
            complete = self.chords.is_complete(group, request.id)
        else:
            if stored is not None:
                self._tell(request, state, stored)
        if complete:
            self._call_body(group, maybe_signature(request.chord, app=self.app))

    def _call_body(self, group: str, body: Any) -> None:
        try:
            values = self._values(group)
        except Exception as error:
            logger.exception("Chord %r raised: %r", group, error)
            failure = error
            self._once(group, lambda: self.chord_error_from_stack(callback=body, exc=failure))
        else:
            try:
                self._once(group, lambda: body.delay(values))
            except Exception as error:
                logger.exception("Chord callback %r raised: %r", body, error)
                failure = ChordError(f"Callback error: {error!r}")
                self._once(group, lambda: self.chord_error_from_stack(callback=body, exc=failure))
        self.delete(self.get_key_for_group(group))
        self.chords.drop(group)

    def _once(self, group: str, call: Callable[[], Any]) -> None:
        """Make the call that ends the chord. Its messages are sent exactly once, even if this process dies during it.

        That holds for the chord's cluster; other brokers may then get them twice.
        """
        called = self.chords.called(group)
        with collect() as messages:
            call()
        own = next((link for link in messages.links if self._is_own(link)), None)
        try:
            if not messages.send(own, called):
                called(self.client)
        except JobNotFound:         # another worker was faster
            pass
        except Aborted as error:
            if not isinstance(error.reason, JobNotFound):
                raise

    def _is_own(self, link: Link) -> bool:
        """Return whether messages of this connection can be sent in one transaction with a command of this backend."""
        if link.access.user != self._access.user:
            return False
        if link.client.cluster is None:
            link.client.ping()
        return link.client.cluster is not None and link.client.cluster == self.client.cluster

    def _values(self, group: str) -> list[Any]:
        """Return the results of the header, in its order and structure; raises ChordError."""
        header = GroupResult.restore(group, app=self.app, backend=self)
        if header is not None:
            header.on_ready()
            with allow_join_result():
                joined: list[Any] = header.join_native(
                    timeout=self.app.conf.result_chord_join_timeout, propagate=True
                )
            return joined
        parts = sorted((self.decode(part) for part in self.chords.values(group)), key=lambda part: part[0])
        return [self._value(*part[1:]) for part in parts]

    def _value(self, task_id: str, state: str, result: Any) -> Any:
        if state in states.EXCEPTION_STATES:
            result = self.exception_to_python(result)
        if state in states.PROPAGATE_STATES:        # the cause is what the parts of a body that is a group fail with
            cause = result if isinstance(result, BaseException) else None
            raise ChordError(f"Dependency {task_id} raised {result!r}") from cause
        return result


def _ids(results: Iterable[Any]) -> Iterator[str]:
    """Yield the ids of the tasks with these results, including those in groups."""
    for result in results:
        if isinstance(result, GroupResult):
            yield from _ids(result.results or ())
        else:
            yield result.id


_opened: WeakSet[ResultBackend] = WeakSet()


def close_backends(app: Any) -> None:
    """Close the backends of this app, regardless of the threads that created them."""
    for backend in list(_opened):
        if backend.app is app:
            backend.close()


def _not_kept(error: SockpqError) -> None:
    logger.error("a result sent from an event loop was not stored: %s", error)


class TlsResultBackend(ResultBackend):
    """`sockpqs://`: the same over TLS."""

    tls = True
