"""`result_backend = "sockpq://host:11361/vhost"`: results in the same cluster as the tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from sockpq import OutcomeUnknown, SockpqError, Unavailable

from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.background.outbox import Outbox
from sockpq_kombu.client import client_of
from sockpq_kombu.mapping.addresses import access_of
from sockpq_kombu.mapping.names import prefix_of
from sockpq_kombu.results.store import Store
from sockpq_kombu.results.waiting import ResultConsumer

logger = get_logger(__name__)

CHORD_S = 86_400.0
FLUSH_S = 30.0                          # how long the end of an app waits for results that were not stored yet
TOLD_BYTES_MAX = 1024 * 1024 - 4096     # of a message; larger results are fetched by those that wait


class ResultBackend(BaseKeyValueStoreBackend, AsyncBackendMixin):
    """Stores results as jobs with a key and a time to live; a chord counts its parts in a queue of its own."""

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
        """The value of a key."""
        return self.store.get(key)

    def mget(self, keys: list[str]) -> list[bytes | None]:
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    def set(self, key: str, value: Any) -> None:
        """Keep a value, for as long as results are kept."""
        self.store.set(key, ensure_bytes(value), self.expires)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def _store_result(self, task_id: str, result: Any, state: str, traceback: Any = None, request: Any = None,
                      **kwargs: Any) -> Any:
        """Store a result; as in Celery, no other state follows success. Waiting clients are notified.

        In an event loop, as for tasks that are revoked or run out of time, it is done soon.
        """
        self._do(lambda: self._keep(task_id, result, state, traceback, request))
        return result

    def _keep(self, task_id: str, result: Any, state: str, traceback: Any, request: Any) -> None:
        if self._get_task_meta_for(task_id)["status"] == states.SUCCESS:
            return
        meta = self._get_result_meta(result=result, state=state, traceback=traceback, request=request)
        value: bytes = ensure_bytes(self.encode({**meta, "task_id": bytes_to_str(task_id)}))
        self.set(self.get_key_for_task(task_id), value)
        waiter = getattr(request, "reply_to", None)
        if waiter and state in states.READY_STATES and len(value) <= TOLD_BYTES_MAX:
            try:
                self.store.tell(waiter, value)
            except SockpqError as error:
                logger.info("the result of %s was stored, but nobody was notified of it: %s", task_id, error)

    def _do(self, call: Callable[[], None]) -> None:
        if must_not_block():
            self._outbox.call(call)
        else:
            call()

    # chords

    @property
    def _chord_s(self) -> float:
        """The number of seconds for which the parts of a chord are kept."""
        return float(getattr(self, "chord_expires", None) or CHORD_S)       # Celery has this setting since 5.7

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        """Set the number of parts of the chord.

        It is known before the last part is sent, when the first ones may have ended.
        """
        self.delete(self.get_key_for_group(group_id, ".called"))      # a chord that was frozen may run again
        self.store.gather(group_id, self._chord_s)
        self.set(self.get_key_for_group(group_id, ".size"), json.dumps(chord_size))

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        """Keep the structure of a header that contains groups."""
        header = self.app.GroupResult(*header_result_args)
        if any(isinstance(one, GroupResult) for one in header.results or ()):
            self._save_group(header.id, header)

    def on_chord_part_return(self, request: Any, state: str, result: Any, propagate: Any = None, **kwargs: Any) -> None:
        """Count the end of a part; after the last one call the body, once."""
        if request.group and request.id:
            self._do(lambda: self._collect(request, state, result))

    def _collect(self, request: Any, state: str, result: Any) -> None:
        group = request.group
        index = request.group_index if request.group_index is not None else 0
        part = self.encode([index, request.id, state, self.encode_result(result, state)])
        count = self.store.collect(group, request.id, ensure_bytes(part), self._chord_s)
        size = self.get(self.get_key_for_group(group, ".size"))
        if size is None or count < json.loads(size):
            return
        if not self.store.add(self.get_key_for_group(group, ".called"), b"1", self._chord_s):
            return
        self._call_body(group, count, maybe_signature(request.chord, app=self.app))

    def _call_body(self, group: str, count: int, body: Any) -> None:
        try:
            values = self._values(group, count)
        except Exception as error:
            logger.exception("Chord %r raised: %r", group, error)
            self.chord_error_from_stack(callback=body, exc=error)
            return
        finally:
            for suffix in ("", ".size"):
                self.delete(self.get_key_for_group(group, suffix))
        try:
            body.delay(values)
        except Exception as error:
            logger.exception("Chord callback %r raised: %r", body, error)
            self.chord_error_from_stack(callback=body, exc=ChordError(f"Callback error: {error!r}"))
        self.store.drop(group)

    def _values(self, group: str, count: int) -> list[Any]:
        """The results of the header, in its order and structure; raises ChordError."""
        header = GroupResult.restore(group, app=self.app, backend=self)
        if header is not None:
            header.on_ready()
            with allow_join_result():
                joined: list[Any] = header.join_native(
                    timeout=self.app.conf.result_chord_join_timeout, propagate=True
                )
            return joined
        parts = sorted((self.decode(part) for part in self.store.gathered(group, count)), key=lambda part: part[0])
        return [self._value(*part[1:]) for part in parts]

    def _value(self, task_id: str, state: str, result: Any) -> Any:
        if state in states.EXCEPTION_STATES:
            result = self.exception_to_python(result)
        if state in states.PROPAGATE_STATES:        # the cause is what the parts of a body that is a group fail with
            cause = result if isinstance(result, BaseException) else None
            raise ChordError(f"Dependency {task_id} raised {result!r}") from cause
        return result


_opened: WeakSet[ResultBackend] = WeakSet()


def close_backends(app: Any) -> None:
    """Close the backends of this app, in whichever threads they were made."""
    for backend in list(_opened):
        if backend.app is app:
            backend.close()


def _not_kept(error: SockpqError) -> None:
    logger.error("a result sent from an event loop was not stored: %s", error)


class TlsResultBackend(ResultBackend):
    """`sockpqs://`: the same over TLS."""

    tls = True
