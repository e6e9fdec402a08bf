"""Another time for the signatures of botocore, whatever version it is."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import botocore.auth

_lock = threading.Lock()


class ShiftedClock:
    """Within the block botocore signs for another time, `seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self._shift = datetime.timedelta(seconds=seconds)
        self._name = "get_current_datetime" if hasattr(botocore.auth, "get_current_datetime") else "datetime"
        self._real: Any = getattr(botocore.auth, self._name)

    def __enter__(self) -> None:
        _lock.acquire()
        real, shift = self._real, self._shift
        if self._name == "datetime":
            setattr(botocore.auth, self._name, _Moved(real, shift))
        else:
            setattr(botocore.auth, self._name, lambda *given, **named: real(*given, **named) + shift)

    def __exit__(self, *_: object) -> None:
        setattr(botocore.auth, self._name, self._real)
        _lock.release()


class _Moved:
    """The module datetime with another time, as old versions of botocore use it."""

    def __init__(self, real: Any, shift: datetime.timedelta) -> None:
        self._real = real

        class Moved(real.datetime):     # type: ignore[misc]
            @classmethod
            def utcnow(cls) -> Any:
                return real.datetime.utcnow() + shift

        self.datetime = Moved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
