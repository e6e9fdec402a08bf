"""Makes the schemes `sockpq` and `sockpqs` known to kombu when a program imports it.

kombu finds transports in a dictionary only. A line in `sockpq_kombu.pth` imports this module at the start of Python;
it waits for `kombu.transport` and adds the names to the dictionary. It imports nothing that Python has not by then.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

WATCHED = "kombu.transport"
SCHEMES = {
    "sockpq": "sockpq_kombu.transport:Transport",
    "sockpqs": "sockpq_kombu.transport:TlsTransport",
}


class Finder:
    """Lets the others find kombu.transport, and adds to what it executes."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of kombu.transport with another loader; None for all other modules."""
        if name != WATCHED:
            return None
        spec = PathFinder.find_spec(name, path, target)     # type: ignore[arg-type]  # passed on as it came
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                register(module)

            spec.loader.exec_module = exec_module           # type: ignore[method-assign]  # the hook
        return spec


def register(module: ModuleType) -> None:
    """Add the schemes to `kombu.transport`."""
    for scheme, path in SCHEMES.items():
        module.TRANSPORT_ALIASES.setdefault(scheme, path)


if WATCHED in sys.modules:
    register(sys.modules[WATCHED])
elif Finder not in sys.meta_path:
    sys.meta_path.insert(0, Finder)
