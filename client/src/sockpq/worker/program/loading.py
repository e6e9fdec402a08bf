"""Where the app comes from: a module by its name, or a program that is run for each job."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from sockpq.errors import BadArguments
from sockpq.worker.app import App
from sockpq.worker.policy import BACKOFF_S, EXPIRE_S, TRIES
from sockpq.worker.program.exec_program import ExecLine
from sockpq.worker.program.options import FOR_EXEC, Options


def load(options: Options) -> App:
    """The app to be run. Raises BadArguments; what the module raises when it is imported passes through."""
    if options.exec_line is not None:
        app = _exec_app(options, options.exec_line)
    else:
        wrong = [key for key in FOR_EXEC if key in options.given]
        if wrong:
            raise BadArguments(f"--{wrong[0]} is for --exec: an app says that of each task")
        app = _imported(options.app or "")
    servers = options.get("servers")
    if servers:
        app.use_servers(servers)
    unknown = [queue for queue in options.get("queues", ()) if queue not in app.queues]
    if unknown:
        raise BadArguments(f"the app has no task and no handler for queue {', '.join(unknown)}")
    if not app.queues:
        raise BadArguments("the app has neither a task nor a handler")
    return app


def _imported(place: str) -> App:
    module, _, attribute = place.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise
        raise BadArguments(f"there is no module {module!r} here or on the path of Python") from error
    except ValueError as error:
        raise BadArguments(f"{place!r} is not MODULE:APP") from error
    for word in (attribute or "app").split("."):
        found = getattr(found, word, None)
    if not isinstance(found, App):
        raise BadArguments(f"{place}: {attribute or 'app'} is not a sockpq.worker.App")
    return found


def _exec_app(options: Options, line: str) -> App:
    queues = options.get("queues", ())
    if not queues:
        raise BadArguments("--exec needs --queues: where its jobs are")
    if options.get("pool", "processes") == "asyncio":
        raise BadArguments("--exec runs programs from processes or threads")
    app = App()
    run = ExecLine(line)
    for queue in queues:
        app.handler(
            queue, expire=options.get("expire", EXPIRE_S), tries=options.get("tries", TRIES),
            backoff=options.get("backoff", BACKOFF_S),
        )(run)
    return app
