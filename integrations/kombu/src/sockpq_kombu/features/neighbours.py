"""Workers that know each other, as with RabbitMQ: mingle when they start, gossip while they run.

Only workers know about a revocation. By mingle a new one gets it from the others, so that it survives when workers are
replaced one after another.
"""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any

from kombu.log import get_logger

DRIVER = "sockpq"
DATA_ERRORS = TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError

logger = get_logger("kombu.transport.sockpq")


def mingle(module: ModuleType) -> None:
    """Ask the other workers, at the start of one, for revoked tasks and their clock."""
    module.Mingle.compatible_transports = {*module.Mingle.compatible_transports, DRIVER}


def gossip(module: ModuleType) -> None:
    """Let workers receive each other's events; an invalid event does not end them."""
    step = module.Gossip
    step.compatible_transports = {*step.compatible_transports, DRIVER}
    hear = step.on_message

    @wraps(hear)
    def on_message(self: Any, prepare: Any, message: Any) -> Any:
        try:
            return hear(self, prepare, message)
        except DATA_ERRORS as error:
            logger.warning("an event that is none is dropped: %s: %s", type(error).__name__, error)

    step.on_message = on_message
