"""The loop of `pqctl shell`: a command is read and executed, and its answer shown, until the input ends."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sockpq import ForeignCluster, Unavailable

from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, Failure
from sockpqd.pqctl.output.stdio import output, say
from sockpqd.pqctl.output.text import counted, printable, readable
from sockpqd.pqctl.shell.completion import Words
from sockpqd.pqctl.shell.input import FILE_BYTES_MAX, Mistyped, Typed, bytes_of, understand
from sockpqd.pqctl.shell.leader_connection import LeaderConnection

if TYPE_CHECKING:
    from sockpqd.pqctl.shell.keyboard import Keyboard

WELCOME = """Commands go to the leader. Data may stand in the line: PUT notes 0 "hello", or PUT notes 0 <FILE.
HELP or ? shows how all commands are written, HELP GET that one. Tab completes, Ctrl-C gives up waiting, QUIT ends."""


class Input(Protocol):
    """The source of commands: a terminal or a file."""

    def command(self, prompt: str) -> str:
        """Read a command; raises EOFError."""

    def data(self, prompt: str, count: int) -> bytes:
        """Read `count` bytes of data; raises EOFError and Mistyped."""


def run(call: Call) -> int:
    """Run the shell on standard input and output."""
    screen = Screen(call)
    leader = LeaderConnection(call, screen.show, say)
    leader.connect()
    try:
        if sys.stdin.isatty():
            _at_terminal(call, leader, screen)
        else:
            with contextlib.suppress(EOFError):
                _loop(leader, screen, Piped())
            leader.finish()
    finally:
        leader.close()
    screen.end_answer("")
    return DONE


def _at_terminal(call: Call, leader: LeaderConnection, screen: Screen) -> None:
    from sockpqd.pqctl.shell.keyboard import Keyboard

    keyboard = Keyboard(Words(lambda: _queue_names(call)))
    call.print(f"{leader.server}\n{WELCOME}")
    with keyboard.undisturbed():
        while True:
            try:
                _loop(leader, screen, Typist(keyboard))
                return
            except EOFError:
                return
            except KeyboardInterrupt:
                leader.interrupt()


def _loop(leader: LeaderConnection, screen: Screen, source: Input) -> None:
    """Execute commands until QUIT. Raises EOFError at the end of the input."""
    while True:
        text = source.command(f"{printable(leader.server) or 'not connected'}> ")
        if not text.strip():
            continue
        try:
            typed, rest = _complete(text, source)
            with screen.whole_lines():
                more = leader.execute(typed, rest)
        except (Mistyped, Unavailable, ForeignCluster, Failure) as error:
            say(str(error))
            continue
        screen.end_answer(typed.line)
        if not more:
            return


def _complete(text: str, source: Input) -> tuple[Typed, bytes]:
    """Return the command, including data that had to be asked for."""
    typed = understand(text, _read_file)
    rest = source.data(f"{counted(typed.missing_bytes, 'byte')}> ", typed.missing_bytes) if typed.missing_bytes else b""
    for number in range(typed.parts):
        part = understand(source.command(f"{number + 1} of {typed.parts}> "), _read_file, part=True)
        rest += part.sent
        if part.missing_bytes:
            rest += source.data(f"{counted(part.missing_bytes, 'byte')}> ", part.missing_bytes)
    return typed, rest


class Screen:
    """Shows answers: unchanged, printable on a terminal, or as an object each with --json."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._json = b""
        self._ended = True          # the last line has its end
        self._lock = threading.Lock()       # answers come in the connection's thread
        self._waiting = False
        self._begun = ""            # of a line on the terminal, while an answer is waited for

    @contextlib.contextmanager
    def whole_lines(self) -> Iterator[None]:
        """Within the block write whole lines only to a terminal, and at its end the rest with a line end.

        The prompt covers a line whose end is written when the prompt is there.
        """
        self._waiting = True
        try:
            yield
        finally:
            with self._lock:
                self._waiting = False
                if self._begun:
                    self._write("\n")

    def show(self, data: bytes) -> None:
        """Show some bytes of an answer."""
        if self._call.as_json:
            self._json += data
        elif sys.stdout.isatty():
            with self._lock:
                self._write(readable(data))
        else:
            self._call.write(data)
            self._ended = data.endswith(b"\n")

    def _write(self, text: str) -> None:
        text = self._begun + text
        length = text.rfind("\n") + 1 if self._waiting else len(text)
        self._begun = text[length:]
        if length:
            with output():
                sys.stdout.write(text[:length])
                sys.stdout.flush()
            self._ended = text[length - 1] == "\n"

    def end_answer(self, command: str) -> None:
        """End the answer to this command."""
        if self._call.as_json:
            if self._json:
                with output():
                    answer = self._json.decode("utf-8", "backslashreplace")
                    print(json.dumps({"command": command, "answer": answer}), flush=True)
            self._json = b""
        elif not self._ended:
            self.show(b"\n")
        self._ended = True


class Piped:
    """Standard input that is a file or pipe."""

    def __init__(self) -> None:
        self._stream = sys.stdin.buffer

    def command(self, prompt: str) -> str:
        """Read a line from the file or pipe."""
        line = self._stream.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", "surrogateescape")

    def data(self, prompt: str, count: int) -> bytes:
        """Read `count` bytes from the file or pipe."""
        data = self._stream.read(count)
        if len(data) < count:
            raise EOFError
        return data


class Typist:
    """A person at a terminal."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard

    def command(self, prompt: str) -> str:
        """Read a line with history and completion."""
        return self._keyboard.command(prompt)

    def data(self, prompt: str, count: int) -> bytes:
        """Read lines until there are enough bytes; the line end of the last one does not count."""
        data = bytes_of(self._keyboard.data(prompt))
        while len(data) < count:
            data += b"\n" + bytes_of(self._keyboard.data(f"{count - len(data) - 1} more> "))
        if len(data) > count:
            raise Mistyped(f"{counted(len(data), 'byte')} came, not {count}: nothing was sent")
        return data


def _read_file(name: str) -> bytes:
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Mistyped(f"{name}: {error.strerror}") from None
    except (ValueError, RuntimeError) as error:         # a NUL in it; the ~ of nobody
        raise Mistyped(f"{name!r}: {error}") from None
    if len(data) > FILE_BYTES_MAX:
        raise Mistyped(f"{name} is too large")
    return data


def _queue_names(call: Call) -> Sequence[str]:
    with cluster_of(call) as (client, _):
        return [queue.name for queue in client.queues()]
