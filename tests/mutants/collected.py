"""Runs collected tests in forks, with the functions of a module changed in place: nothing is imported once more.

`python -m tests.mutants.collected TESTS...`, in the folder of the copy, reads a request in each line, and answers with
a line. A test that never calls the changed function cannot notice; of the others those that execute the changed line
come first, the quickest first. Without a failure all have been run.
"""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TextIO

import pytest
from hypothesis import Phase, settings

from tests.mutants.forks import (
    LIMIT_EXTRA_S,
    LIMIT_TIMES,
    MEMORY_BYTES_MAX,
    WAITING_TIMES,
    Ended,
    Process,
    in_fork,
)

TRACED_CALLS = 5            # of a function in a test; later ones are not looked at line by line
WATCHED_CALLS = 20_000      # of all functions in a test; what is called later is not known
BRIEFLY_S = 5.0             # of processor time are enough for a first look
SHRINKING_NOTHING = (Phase.explicit, Phase.generate)

Place = tuple[str, int]     # module, line


class Unchangeable(Exception):
    """It is no function that differs: only a new import shows the change."""


class Collected(Process):
    """A process that has collected the tests, until close()."""

    def __init__(self, folder: Path, tests: Iterable[str]) -> None:
        super().__init__(folder, "tests.mutants.collected", *tests)

    def learn(self) -> Ended:
        """Run all tests without a change, to know which call what."""
        return self.ask({"learn": True})

    def judge(self, module: str, line: int, source: bytes, tests: Iterable[str], *, long: bool = True) -> Ended:
        """Run the tests of these files with a changed `source` of a module, whose `line` differs.

        Without `long` run only the first of them, to list mutants that may survive. The answer's `how` is `import` if
        the change is outside functions.
        """
        return self.ask({"module": module, "line": line, "source": source.decode(), "tests": list(tests), "long": long})


# In the process

@dataclass
class Known:
    """The result of a test without a change."""

    called: set[Place] = field(default_factory=set)     # the first lines of functions
    lines: set[Place] = field(default_factory=set)
    more: bool = False                                  # not all is known
    processor_s: float = 0.0


LONG = Known(more=True, processor_s=10.0)      # is not run without a change before one needs it


def main() -> None:
    """Collect the tests, and answer requests."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1):
        os.dup2(nothing, file)
    options = [
        "-q", "-s", "-o", "timeout=0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning",
        f"--basetemp={Path.cwd()}-collected-tmp",
    ]
    sys.exit(pytest.main([*options, *sys.argv[1:]], plugins=[Server(requests, answers)]))


class Server:
    """A plugin of pytest that runs tests when it is asked to."""

    def __init__(self, requests: TextIO, answers: TextIO) -> None:
        self._requests, self._answers = requests, answers
        self._items: list[pytest.Item] = []
        self._known: dict[str, Known] = {}
        self._caught: Counter[tuple[str, str, int]] = Counter()     # test, module, first line of the function
        self._functions: list[FunctionType] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        settings.register_profile("mutants", settings.get_profile("gate"), phases=SHRINKING_NOTHING)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the process that runs the test."""
        if report.failed:
            print(f"\nFAILED {report.nodeid} - {report.longreprtext[-200:]!r}", flush=True)
            os._exit(1)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = session.items
        gc.unfreeze()           # as conftest.py froze what had been imported then
        gc.collect()
        here = str(Path.cwd())
        self._functions = [
            each for each in gc.get_objects()
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(here)
        ]
        gc.freeze()
        for line in self._requests:
            request = json.loads(line)
            if session.testsfailed:
                ended = Ended("red", 0.0, "the tests cannot be collected")
            else:
                ended = self._learn() if "learn" in request else self._judge(**request)
            print(json.dumps(asdict(ended)), file=self._answers, flush=True)
        return True

    def _learn(self) -> Ended:
        with tempfile.TemporaryFile() as file:
            def child() -> None:
                tracer = Tracer()
                known = {}
                quick = [item for item in self._items if item.get_closest_marker("long") is None]
                for item in self._run(quick, lambda _: None, tracer.start):
                    known[item.nodeid] = tracer.end()
                file.write(pickle.dumps(known))
                file.flush()
            ended = in_fork(child)
            if ended.how == "green":
                file.seek(0)
                self._known = pickle.load(file)
        return ended

    def _judge(self, module: str, line: int, source: str, tests: list[str], *, long: bool) -> Ended:
        try:
            changes = self._changes(module, source)
        except Unchangeable as why:
            return Ended("import", 0.0, str(why))
        function = extent(Path(module).read_text("utf-8"), line)
        chosen = [item for item in self._items if item.nodeid.partition("::")[0] in tests]

        def order(item: pytest.Item) -> tuple[bool, int, float]:
            known = self._known.get(item.nodeid, LONG)
            caught = self._caught[item.nodeid, module, function.start]
            return (module, line) not in known.lines, -caught, known.processor_s

        calling = {(module, number) for number in function}
        chosen = [
            item for item in chosen
            if (known := self._known.get(item.nodeid, LONG)).more or known.called & calling
        ]
        chosen.sort(key=order)
        if not long:
            spent_s = accumulate(self._known.get(item.nodeid, LONG).processor_s for item in chosen)
            chosen = [item for item, until_s in zip(chosen, spent_s, strict=True) if until_s <= BRIEFLY_S]

        def child() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
            for changed, code in changes:
                changed.__code__ = code
            for _ in self._run(chosen, self._limit, lambda: None):
                pass

        ended = in_fork(child)
        if ended.how == "red":
            test = ended.said.removeprefix("FAILED ").partition(" - ")[0]
            if test in self._known or in_fork(lambda: self._run_one(test)).how == "green":
                self._caught[test, module, function.start] += 1
            else:
                return replace(ended, how="unsound")
        return ended

    def _run_one(self, test: str) -> None:
        for _ in self._run([item for item in self._items if item.nodeid == test], self._limit, lambda: None):
            pass

    def _limit(self, item: pytest.Item) -> None:
        """One that takes too long ends the process."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        limit_s = LIMIT_TIMES * self._known.get(item.nodeid, LONG).processor_s + LIMIT_EXTRA_S
        spent_s = usage.ru_utime + usage.ru_stime
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent_s + limit_s) + 1, resource.RLIM_INFINITY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, WAITING_TIMES * limit_s)

    def _run(
        self, items: list[pytest.Item], before: Callable[[pytest.Item], None], start: Callable[[], None],
    ) -> Iterator[pytest.Item]:
        for item, following in zip(items, [*items[1:], None], strict=False):
            before(item)
            start()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item

    def _changes(self, module: str, source: str) -> list[tuple[FunctionType, CodeType]]:
        """The loaded functions that differ, with their new code."""
        before = codes(compile(Path(module).read_text("utf-8"), module, "exec", dont_inherit=True))
        after = codes(compile(source, module, "exec", dont_inherit=True))
        # firsts differ below a change that has fewer lines, and nothing else
        differing = {name: code for name, code in after.items() if name in before and not same(before[name], code)}
        found = [
            (function, differing[name]) for function in self._functions
            if module_of(function.__code__.co_filename) == module
            and (name := function.__code__.co_qualname) in differing
        ]
        if not found:
            raise Unchangeable("no function differs")
        for function, code in found:
            if function.__code__.co_freevars != code.co_freevars:
                raise Unchangeable("it has another closure")
        return found


class Tracer:
    """Notes what a test calls."""

    def __init__(self) -> None:
        self._known = Known()
        self._calls: Counter[CodeType] = Counter()
        self._began_s = 0.0
        self._watched = 0

    def start(self) -> None:
        self._known, self._calls, self._began_s, self._watched = Known(), Counter(), _spent_s(), 0
        threading.settrace(self._call)
        sys.settrace(self._call)

    def end(self) -> Known:
        sys.settrace(None)
        threading.settrace(None)        # type: ignore[arg-type]
        self._known.processor_s = _spent_s() - self._began_s
        return self._known

    def _call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        self._watched += 1
        if self._watched > WATCHED_CALLS:
            self._known.more = True
            sys.settrace(None)
            return None
        code = frame.f_code
        module = module_of(code.co_filename)
        if module is None:
            return None
        self._calls[code] += 1
        if self._calls[code] == 1:
            self._known.called.add((module, code.co_firstlineno))
        return self._line if self._calls[code] <= TRACED_CALLS else None

    def _line(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            module = module_of(frame.f_code.co_filename)
            assert module is not None
            self._known.lines.add((module, frame.f_lineno))
        return self._line


@functools.cache
def module_of(filename: str) -> str | None:
    """The name in the list of modules: sockpqd/ has links to the folders."""
    path = Path(filename).resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd() / "cluster") else None


def codes(code: CodeType) -> dict[str, CodeType]:
    """The code of each function in it by its qualified name, where one name belongs to one function."""
    found: list[CodeType] = []
    _collect(code, found)
    counts = Counter(each.co_qualname for each in found)
    return {each.co_qualname: each for each in found if counts[each.co_qualname] == 1}


def _collect(code: CodeType, found: list[CodeType]) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.append(constant)
            _collect(constant, found)


def same(one: CodeType, other: CodeType) -> bool:
    """They do the same, wherever they stand."""
    return (
        one.co_code == other.co_code and one.co_names == other.co_names and one.co_freevars == other.co_freevars
        and len(one.co_consts) == len(other.co_consts)
        and all(
            same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
            for a, b in zip(one.co_consts, other.co_consts, strict=True)
        )
    )


def extent(source: str, line: int) -> range:
    """The lines of the outermost function around a line, with its decorators."""
    for node in ast.walk(ast.parse(source)):        # the outermost are found first
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = range(min([node, *node.decorator_list], key=lambda one: one.lineno).lineno, node.end_lineno + 1)
            if line in lines:
                return lines
    return range(line, line + 1)


def _spent_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
