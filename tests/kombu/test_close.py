"""`app.close()`: no connection of a result backend is left, and what was to be stored is."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

import pytest
from celery import Celery
from sockpq.testing import Server
from sockpq_kombu.background import event_loop

from tests.waiting import until


def sockets() -> set[str]:
    """The sockets of this process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return {one for one in found if one.startswith("socket:")}


def test_no_connection_of_a_result_backend_is_left(own_server: Server) -> None:
    before = sockets()
    with Celery(backend=f"sockpq://{own_server.address}/") as app, Celery(backend=app.conf.result_backend) as other:
        other.backend.set("kept", b"1")
        of_other = sockets() - before
        app.backend.set("a", b"1")
        app.backend.result_consumer.consume_from("waited for")
        in_thread = threading.Thread(target=lambda: app.backend.get("a"))
        in_thread.start()
        in_thread.join()
        assert len(sockets() - before) >= len(of_other) + 3
        app.close()
        until(lambda: sockets() - before == of_other)
        assert app.backend.get("a") == b"1"         # it may be used again
    until(lambda: sockets() <= before)


def test_results_of_an_event_loop_are_stored_before(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with Celery(backend=f"sockpq://{own_server.address}/") as app:
        monkeypatch.setattr("sockpq_kombu.results.backend.must_not_block", event_loop.in_event_loop)
        event_loop.enter_event_loop()
        try:
            for number in range(20):
                app.backend.store_result(f"task {number}", number, "SUCCESS")
        finally:
            event_loop.leave_event_loop()
        app.close()
        assert app.AsyncResult("task 19").result == 19
