"""`app.close()` closes the connections of result backends as well, which Celery leaves to the garbage collector."""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any


def close(module: ModuleType) -> None:
    """Make Celery close the backends created by the app, one for each thread."""
    close_app = module.Celery.close

    @wraps(close_app)
    def close(self: Any) -> None:
        close_app(self)
        backends = sys.modules.get("sockpq_kombu.results.backend")      # otherwise there is none of ours
        if backends is not None:
            backends.close_backends(self)

    module.Celery.close = close
