"""Loads the app: a module by its name, or an app that runs a program for each job."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from typing import Any

import sockpq
from sockpq.errors import BadArguments
from sockpq.worker.app import App
from sockpq.worker.policy import EXPIRE_S, TRIES
from sockpq.worker.program.exec_program import ExecLine
from sockpq.worker.program.options import FOR_EXEC, Options

PLACE = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?")
# Files whose frames in a failed import do not belong to the app: the import machinery, and this library.
NOT_OF_THE_APP = "<frozen ", os.path.dirname(importlib.__file__), os.path.dirname(sockpq.__file__)


def load(options: Options) -> App:
    """Return the app to be run; raises BadArguments."""
    if options.exec_line is not None:
        app = _exec_app(options, options.exec_line)
    else:
        wrong = [key for key in FOR_EXEC if key in options.given]
        if wrong:
            raise BadArguments(f"--{wrong[0]} goes with --exec only: an app sets it for each task")
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
    if not PLACE.fullmatch(place):
        raise BadArguments(f"{place!r} is not MODULE:APP, the name of a module and of the App in it, such as app:app")
    module, _, attribute = place.partition(":")
    attribute = attribute or "app"
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise BadArguments(_why_not(module, error)) from error
    apps = [name for name, value in vars(found).items() if isinstance(value, App)]
    for word in attribute.split("."):
        found = getattr(found, word, None)
    if not isinstance(found, App):
        there = f"its apps: {', '.join(apps)}" if apps else "it has none: app = sockpq.worker.App()"
        raise BadArguments(f"{attribute!r} of module {module!r} is not an App; {there}")
    return found


def _why_not(module: str, error: BaseException) -> str:
    """Return why a module cannot be imported, and the place in it."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        hint = f": do you mean {module.removesuffix('.py')}:app?" if module.endswith(".py") else ""
        return f"there is no module {module!r} in {os.getcwd()} or on Python's path{hint}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(NOT_OF_THE_APP)]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own and not isinstance(error, SyntaxError) else ""
    return f"module {module!r} cannot be imported: {type(error).__name__}: {error}{where}"


def _exec_app(options: Options, line: str) -> App:
    queues = options.get("queues", ())
    if not queues:
        raise BadArguments("--exec needs --queues, the queues that have its jobs")
    if options.get("pool", "processes") == "asyncio":
        raise BadArguments("--exec needs --pool processes or threads")
    app = App()
    run = ExecLine(line)
    for queue in queues:
        app.handler(
            queue, expire=options.get("expire", EXPIRE_S), tries=options.get("tries", TRIES),
            backoff=options.get("backoff"),
        )(run)
    return app
