"""`pytest -p tests.forks --forks 4`: forks of the process that has collected the tests run them.

pytest-xdist starts processes, each of which imports and collects everything again: with eleven thousand tests, most of
which take a millisecond, that was a fifth of all processor time. A fork has what was collected. It takes the number of
its next few tests from a pipe that all forks share, so that none waits while another has many left, and sends its
reports to the first process, which shows and counts them as if it had run the tests itself.

A fork that dies fails the run. Warnings are errors here (pyproject.toml), so no fork has any to hand over.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

import pytest

PORTION = 20            # tests of one file that a fork takes at a time: what a file sets up is seldom made twice
NUMBER = struct.Struct("<I")
READ_BYTES = 1 << 16

Portions = Sequence[Sequence[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --forks."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the collected tests in N forks at once")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, unless there is nothing to run."""
    options = session.config.option
    if not options.forks or options.collectonly or not session.items:
        return None
    if session.testsfailed and not options.continue_on_collection_errors:
        return None                     # pytest's own loop says so
    _temporary(session.config).getbasetemp()        # one folder, in which each fork has its own
    portions = list(portions_of(session.items))
    with Numbers(len(portions)) as numbers:
        forks = [Fork(session, name, portions, numbers) for name in range(options.forks)]
        try:
            _gather(session, forks, numbers)
        except BaseException:           # an interrupt
            for fork in forks:
                fork.interrupt()
            raise
        finally:
            failures = [failure for fork in forks if (failure := fork.join())]
    if failures:
        raise RuntimeError("\n".join(failures))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def portions_of(items: Sequence[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """Yield neighbours of one file, a few at a time; of tests that take long, one at a time."""
    portion: list[pytest.Item] = []
    for item in items:
        if portion and (len(portion) == PORTION or item.path != portion[-1].path or _long(item) or _long(portion[-1])):
            yield portion
            portion = []
        portion.append(item)
    if portion:
        yield portion


def _long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


class Numbers:
    """The numbers from 0 on, each of which one of several processes takes: a pipe that holds them all."""

    def __init__(self, count: int) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(writing, False)
        data = b"".join(map(NUMBER.pack, range(count)))
        written = os.write(writing, data)
        os.close(writing)
        if written < len(data):
            raise ValueError(f"a pipe does not hold {count} numbers")

    def take(self) -> int | None:
        """Return a number that nobody else is given, or None if none is left."""
        data = os.read(self._reading, NUMBER.size)      # the kernel lets one process read at a time
        return NUMBER.unpack(data)[0] if data else None

    def drain(self) -> None:
        """Leave none."""
        while os.read(self._reading, READ_BYTES):
            pass

    def __enter__(self) -> Numbers:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reading)


class Fork:
    """A fork that runs portions of the tests, as the process that has collected them sees it."""

    def __init__(self, session: pytest.Session, name: int, portions: Portions, numbers: Numbers) -> None:
        self.reading, writing = os.pipe()
        self.running: pytest.Item | None = None
        self.ended = False
        self._received = bytearray()
        self._failure = ""
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            os.close(self.reading)
            _work(session, name, portions, numbers, writing)
        os.close(writing)

    def receive(self) -> list[Any]:
        """Return the messages that have come; at the end of them all `ended` is true."""
        data = os.read(self.reading, READ_BYTES)
        self.ended = self.ended or not data
        self._received += data
        messages = []
        while len(self._received) >= NUMBER.size:
            end = NUMBER.size + NUMBER.unpack_from(self._received)[0]
            if len(self._received) < end:
                break
            messages.append(pickle.loads(self._received[NUMBER.size:end]))
            del self._received[:end]
        return messages

    def fail(self, reason: str) -> None:
        """Note why it ended early."""
        self._failure = reason

    def interrupt(self) -> None:
        """Let it end the test that it runs, and tidy up after it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGINT)

    def join(self) -> str:
        """Wait until it has ended; return what was wrong with it, or nothing."""
        os.close(self.reading)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if self._failure or (code == 0 and not self.running):
            return self._failure
        return f"a fork ended with {code} in {self.running.nodeid if self.running else 'no test'}"


def _gather(session: pytest.Session, forks: Sequence[Fork], numbers: Numbers) -> None:
    """Show what the forks report, until all have ended."""
    items = session.items
    with selectors.DefaultSelector() as selector:
        for fork in forks:
            selector.register(fork.reading, selectors.EVENT_READ, fork)
        while selector.get_map():
            for key, _ in selector.select():
                for kind, value in (fork := key.data).receive():
                    if kind == "began":
                        fork.running = items[value]
                    elif kind == "reports":
                        _show(session.config, items[value[0]], value[1])
                        fork.running = None
                    elif kind == "failed":
                        fork.fail(value)
                    else:
                        fork.ended = True       # also where a program that it has left behind holds its end of the pipe
                if fork.ended:
                    selector.unregister(fork.reading)
            if session.shouldfail:              # as with -x
                numbers.drain()


def _show(config: pytest.Config, item: pytest.Item, reports: Sequence[dict[str, Any]]) -> None:
    config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for data in reports:
        report = config.hook.pytest_report_from_serializable(config=config, data=data)
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _work(session: pytest.Session, name: int, portions: Portions, numbers: Numbers, writing: int) -> NoReturn:
    """Run portions of the tests in this fork until none is left, or until an interrupt."""
    code = 1
    try:
        signal.signal(signal.SIGINT, _interrupt_once)
        _separate(session.config, name)
        reporting = Reporting(session, writing)
        session.config.pluginmanager.register(reporting)
        reporting.run(portions, numbers)
        code = 0
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; a terminal's Ctrl-C comes here from the terminal and from the first process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _separate(config: pytest.Config, name: int) -> None:
    """Share no output and no temporary folder with other forks."""
    capturing = config.pluginmanager.getplugin("capturemanager")
    capturing.stop_global_capturing()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)                 # what pytest shows of the tests is shown by the first process
    os.close(nowhere)
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    factory = _temporary(config)
    factory._basetemp = factory.getbasetemp() / f"fork{name}"       # a worker of xdist has this from its command line
    factory._basetemp.mkdir(0o700)


def _temporary(config: pytest.Config) -> pytest.TempPathFactory:
    factory: pytest.TempPathFactory = config._tmp_path_factory      # type: ignore[attr-defined]    # has no public name
    return factory


class Reporting:
    """Runs tests in a fork, and sends their reports."""

    def __init__(self, session: pytest.Session, writing: int) -> None:
        self._session = session
        self._writing = writing
        self._reports: list[pytest.TestReport] = []
        self._index = {item: index for index, item in enumerate(session.items)}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report until its test has ended."""
        self._reports.append(report)

    def run(self, portions: Portions, numbers: Numbers) -> None:
        """Run portions until none is left, then what pytest does last."""
        config = self._session.config
        try:
            coming = (item for number in iter(numbers.take, None) for item in portions[number])
            item = next(coming, None)
            while item is not None:
                following = next(coming, None)      # what the next test shares with this one stays set up
                self._send("began", self._index[item])
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self._send("reports", (self._index[item], [
                    config.hook.pytest_report_to_serializable(config=config, report=report) for report in self._reports
                ]))
                self._reports.clear()
                item = following
            config._ensure_unconfigure()            # shows what was collected as garbage and could not be finalised
        except KeyboardInterrupt:
            self._session._setupstate.teardown_exact(None)
            raise
        except BaseException:
            self._send("failed", traceback.format_exc())
            raise
        self._send("ended", None)

    def _send(self, kind: str, value: object) -> None:
        data = pickle.dumps((kind, value))
        rest = memoryview(NUMBER.pack(len(data)) + data)
        while rest:
            rest = rest[os.write(self._writing, rest):]
