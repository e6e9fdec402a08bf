"""Adds the schemes `sockpq` and `sockpqs` to kombu, and to the lists of brokers in Celery and Flower.

kombu finds transports only in a dictionary, and Celery enables features only for drivers that it knows by name. A line
in `sockpq_kombu.pth` imports this module when Python starts; it waits until the modules in question are imported, and
patches each of them. It imports nothing that Python has not loaded by then.
"""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

SCHEMES = {
    "sockpq": "sockpq_kombu.transport:Transport",
    "sockpqs": "sockpq_kombu.transport:TlsTransport",
}


class Finder:
    """Wraps the loading of certain modules, to run a hook after each."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of one of these modules with another loader; None for all other modules."""
        if name not in WATCHED:
            return None
        spec = PathFinder.find_spec(name, path, target)     # type: ignore[arg-type]  # passed on as it came
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                WATCHED[name](module)

            spec.loader.exec_module = exec_module           # type: ignore[method-assign]  # the hook
        return spec


def register(module: ModuleType) -> None:
    """Add the schemes to `kombu.transport`."""
    for scheme, path in SCHEMES.items():
        module.TRANSPORT_ALIASES.setdefault(scheme, path)


def _mingle(module: ModuleType) -> None:
    from sockpq_kombu.features.neighbours import mingle

    mingle(module)


def _gossip(module: ModuleType) -> None:
    from sockpq_kombu.features.neighbours import gossip

    gossip(module)


def _received(module: ModuleType) -> None:
    from sockpq_kombu.features.received import received

    received(module)


def _broker_page(module: ModuleType) -> None:
    from sockpq_kombu.features.flower_page import broker_page

    broker_page(module)


def _disable_prefetch(module: ModuleType) -> None:
    from sockpq_kombu.features.disable_prefetch import disable_prefetch

    disable_prefetch(module)


def _revoke(module: ModuleType) -> None:
    from sockpq_kombu.features.revoke import revoke

    revoke(module)


def _publish_together(module: ModuleType) -> None:
    from sockpq_kombu.features.publish_together import publish_together

    publish_together(module)


def _close(module: ModuleType) -> None:
    from sockpq_kombu.features.close import close

    close(module)


WATCHED: dict[str, Callable[[ModuleType], None]] = {
    "kombu.transport": register,
    "celery.app.base": _close,
    "celery.app.control": _revoke,
    "celery.canvas": _publish_together,
    "celery.worker.consumer.mingle": _mingle,
    "celery.worker.consumer.gossip": _gossip,
    "celery.worker.consumer.consumer": _received,
    "celery.worker.consumer.tasks": _disable_prefetch,
    "flower.utils.broker": _broker_page,
}

for _name, _add in WATCHED.items():
    if _name in sys.modules:
        _add(sys.modules[_name])
if Finder not in sys.meta_path:
    sys.meta_path.insert(0, Finder)
