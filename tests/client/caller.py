"""A call in a thread, for tests of blocking calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Caller:
    """A call in a thread, and its result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.value: Any = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._call()
        except Exception as error:
            self.error = error

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.error:
            raise self.error
        return self.value
