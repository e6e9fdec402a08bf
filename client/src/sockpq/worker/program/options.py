"""The options of pqworker, from the command line and from a TOML file with the same names as keys."""

from __future__ import annotations

import argparse
import os
import re
import socket
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from sockpq._protocol.arguments import name as queue_name
from sockpq._version import __version__
from sockpq.errors import BadArguments
from sockpq.worker.policy import BACKOFF_S, EXPIRE_S, TRIES
from sockpq.worker.pool.autoscale import KEEPALIVE_S
from sockpq.worker.pool.fetch import POLICIES
from sockpq.worker.pool.memory import share_of, size_bytes
from sockpq.worker.pool.settings import ALSO_CALLED, KINDS, START_LIMIT_S, STRATEGIES, PoolSettings

WORKER_NAME_MAX = 64
LOG_FORMATS = ("auto", "json", "text")


class Options(NamedTuple):
    """The options of the program.

    `given`: values from the command line and the file it names, the command line first, by option; no defaults.
    """

    app: str | None
    exec_line: str | None
    config: str | None
    given: Mapping[str, Any]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value that was given, or the default."""
        return self.given.get(key, default)


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line, and the configuration file if it names one, over which the line takes precedence.

    Raises BadArguments; exits for --help and --version.
    """
    found = vars(_parser().parse_args(arguments))
    config = found.pop("config")
    given = {
        key: _checked(key, value, key.upper() if key == "app" else f"--{key} {value}")
        for key, value in found.items() if value is not None
    }
    if config is not None:
        settings = read_config(config)
        if SIZES & given.keys():
            settings = {key: value for key, value in settings.items() if key not in SIZES}
        given = {**settings, **given}
    app, exec_line = given.get("app"), given.get("exec")
    if (app is None) == (exec_line is None):
        raise BadArguments("give either an app, as in `pqworker app:app`, or a program by --exec")
    return Options(app, exec_line, config, given)


def read_config(path: str) -> dict[str, Any]:
    """Return the values of the file, by option. Raises BadArguments."""
    try:
        settings = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadArguments(f"--config {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadArguments(f"{path} is not valid TOML: {error}") from error
    unknown = {key for key in settings if key not in KEYS}
    if unknown:
        raise BadArguments(f"{path}: there is no option {', '.join(sorted(unknown))}")
    return {key: _checked(key, value, f"{path}: {key} = {value!r}") for key, value in settings.items()}


def pool_settings(options: Options) -> PoolSettings:
    """Return the settings of the pool by the options. Raises BadArguments."""
    get = options.get
    most, least = get("autoscale") or (get("concurrency", os.cpu_count() or 1),) * 2
    return PoolSettings(
        queues=get("queues", ()), most=most, least=least, strategy=get("strategy", "fair"),
        keepalive=get("autoscale-keepalive", KEEPALIVE_S), start_limit=get("start-limit", START_LIMIT_S),
        prefetch=get("prefetch", 4), by=get("by"), tasks_max=get("max-tasks-per-child"),
        memory_bytes_max=get("max-memory-per-child"), memory_share=get("memory-share"),
        time_limit=get("time-limit"), soft_time_limit=get("soft-time-limit"),
        name=get("name") or default_name(), kind=get("pool", "processes"),
    ).checked()


def default_name() -> str:
    """Return a name of this worker: its host and its process."""
    host = "".join(one if one.isalnum() or one in "_.-" else "-" for one in socket.gethostname())
    pid = str(os.getpid())
    return f"{host[: WORKER_NAME_MAX - len(pid) - 1]}-{pid}"


def _queues(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise BadArguments("needs a list of queues")
    return tuple(dict.fromkeys(queue_name(one.strip() if isinstance(one, str) else one, "queue") for one in names))


def _pair(value: Any) -> tuple[int, int]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or len(words) != 2:
        raise BadArguments("needs the maximum and the minimum number of children: 10,3")
    most, least = (_count(word, 0) for word in words)
    if least > most or not most:
        raise BadArguments("needs the maximum first, then the minimum, which may be 0: 10,3")
    return most, least


def _backoff(value: Any) -> tuple[float, float]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or len(words) != 2:
        raise BadArguments("needs the first pause and the longest: 2,600")
    first, longest = (_number(word) for word in words)
    if not 0 <= first <= longest < float("inf"):
        raise BadArguments("needs the first pause and the longest: 2,600")
    return first, longest


def _count(value: Any, least: int = 1) -> int:
    number = _number(value)
    if isinstance(value, float) or number < least or not number.is_integer():
        raise BadArguments(f"needs a whole number of {least} or more")
    return int(number)


def _strategy(value: Any) -> str:
    read = _one_of(*STRATEGIES, *ALSO_CALLED)(value)
    return ALSO_CALLED.get(read, read)


def _count_or_none(value: Any) -> int:
    return _count(value, 0)


def _seconds(value: Any) -> float:
    seconds = _number(value)
    if not 0 < seconds < float("inf"):
        raise BadArguments("needs a number of seconds above 0")
    return seconds


def _number(value: Any) -> float:
    """Return the value as a number; NaN if it is not one, so that every comparison with it is false."""
    try:
        return float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return float("nan")


def _size(value: Any) -> int:
    return size_bytes(str(value))


def _share(value: Any) -> float:
    return share_of(str(value))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadArguments("needs a string that is not blank")
    return value


def _name(value: Any) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.:@-]{1,64}", _text(value)) or value in ("LIST", "SET"):
        raise BadArguments("needs 1 to 64 of A-Z a-z 0-9 _ . : @ -, but not LIST or SET")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadArguments("must be true or false")
    return value


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise BadArguments(f"must be one of {', '.join(words)}")
        return str(value)

    return read


class Option(NamedTuple):
    """One option: the parser of its value, its placeholder in the help page, and its description there."""

    read: Callable[[Any], Any]
    metavar: str
    help: str
    short: str = ""


KEYS: dict[str, Option] = {
    "app": Option(_text, "MODULE:APP", "where the App is: app:app"),
    "servers": Option(_text, "HOST:PORT,..", "servers of the cluster, instead of the app's and the configured ones"),
    "queues": Option(_queues, "A,B", "take jobs from these queues only; without it from all that the app has"),
    "concurrency": Option(_count, "N", "children; by default as many as there are processors", "-c"),
    "autoscale": Option(_pair, "MOST,LEAST", "as many children as there is work for, in these bounds; overrides -c"),
    "autoscale-keepalive": Option(_seconds, "S", f"end no child for so long after the last growth ({KEEPALIVE_S:g})"),
    "pool": Option(_one_of(*KINDS), "KIND", "what children are: processes (default), threads or asyncio"),
    "strategy": Option(_strategy, "WHICH", "fair (default): jobs go to idle children; fast, or fcfs: spread to all"),
    "prefetch": Option(_count_or_none, "N", "jobs taken at once for each idle child (4); 0: all that there are"),
    "by": Option(_one_of(*POLICIES), "POLICY", f"how the server chooses among queues: {', '.join(POLICIES)}"),
    "max-tasks-per-child": Option(_count, "N", "replace a child after this many tasks"),
    "max-memory-per-child": Option(_size, "SIZE", "replace a child that has had more memory: 200M"),
    "memory-share": Option(_share, "PERCENT", "do not grow while so much of all memory is used: 60%%"),
    "start-limit": Option(_seconds, "S", f"replace a child that is not ready after this long ({START_LIMIT_S:g})"),
    "time-limit": Option(_seconds, "S", "kill a child that works on one job for longer"),
    "soft-time-limit": Option(_seconds, "S", "raise SoftTimeLimit in a task after this long"),
    "name": Option(_name, "NAME", "the worker's name in `pqctl worker list`; by default host and process"),
    "log-format": Option(_one_of(*LOG_FORMATS), "FORMAT", "json, text, or auto (default): text on a terminal"),
    "verbose": Option(_flag, "", "a line in the log for each job that is done", "-v"),
    "check": Option(_flag, "", "only show what it would do, and whether the cluster answers"),
    "metrics": Option(_text, "HOST:PORT", "serve Prometheus metrics there"),
    "progress": Option(_flag, "", "show what is going on, on a terminal"),
    "exec": Option(_text, "LINE", "run a program for each job: its body on standard input; %%k key, %%q queue, %%i id"),
    "expire": Option(_seconds, "S", f"for --exec: the lease ({EXPIRE_S:g})"),
    "tries": Option(_count, "N", f"for --exec: how often a job is tried ({TRIES})"),
    "backoff": Option(_backoff, "S,S", "for --exec: the first pause after a failure and the longest "
                      f"({BACKOFF_S[0]:g},{BACKOFF_S[1]:g})"),
}
FOR_EXEC = ("expire", "tries", "backoff")
SIZES = {"concurrency", "autoscale"}     # either on the command line goes before both of the file


def _checked(key: str, value: Any, told: str) -> Any:
    """Return the value; `told` is the original text."""
    try:
        return KEYS[key].read(value)
    except BadArguments as error:
        raise BadArguments(f"{told}: {error}") from error


class _Parser(argparse.ArgumentParser):
    """Reports errors in the same way as the rest of the program."""

    def error(self, message: str) -> NoReturn:
        raise BadArguments(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pqworker", description="Runs the tasks of an app, or a program for each job.", allow_abbrev=False,
        epilog="Signals: TERM finishes what runs and gives back the rest; a second TERM, or QUIT, stops at once; HUP "
        "reads --config again. What an app says of a task by @app.task, with its defaults: the lease, renewed while "
        f"the task runs (expire={EXPIRE_S:g}), how often it is tried (tries={TRIES}), and the first pause after a "
        f"failure and the longest (backoff=({BACKOFF_S[0]:g}, {BACKOFF_S[1]:g})).",
    )
    parser.add_argument("--version", action="version", version=f"pqworker, version {__version__}")
    parser.add_argument("--config", metavar="FILE", help="options in TOML, named as here; those given here override it")
    for key, option in KEYS.items():
        flags = [option.short, f"--{key}"] if option.short else [f"--{key}"]
        if key == "app":
            parser.add_argument(key, nargs="?", metavar=option.metavar, help=option.help)
        elif option.read is _flag:
            parser.add_argument(*flags, dest=key, action="store_true", default=None, help=option.help)
        else:
            parser.add_argument(*flags, dest=key, metavar=option.metavar, help=option.help)
    return parser


