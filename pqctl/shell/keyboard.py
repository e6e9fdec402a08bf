"""A terminal: lines with history and completion, and answers that may come while a line is being typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from sockpqd.pqctl.shell.completion import Words

SECRETS = ("AUTH ", "USER SET ")        # beginnings of lines that are kept nowhere


class Keyboard:
    """Reads lines with history and completion."""

    def __init__(self, words: Words) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(), completer=_Completer(words), complete_while_typing=False, complete_in_thread=True,
        )
        self._plain: PromptSession[str] = PromptSession()

    def command(self, prompt: str) -> str:
        """Read a command. Raises EOFError and KeyboardInterrupt."""
        return self._session.prompt(prompt)

    def data(self, prompt: str) -> str:
        """Read a line of data, which is not kept in the history. Raises EOFError and KeyboardInterrupt."""
        return self._plain.prompt(prompt)

    def undisturbed(self) -> AbstractContextManager[None]:
        """Within the block, output appears above the line being typed."""
        return patch_stdout()


class _Completer(Completer):
    def __init__(self, words: Words) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions of the typed text."""
        before = document.text_before_cursor
        unfinished = before.rpartition(" ")[2]
        for word in self._words.after(before):
            yield Completion(word, -len(unfinished))


class _Discreet(FileHistory):
    def store_string(self, string: str) -> None:
        """Keep a line, unless there is a secret in it."""
        if not string.strip().upper().startswith(SECRETS):
            super().store_string(string)


def history_file(environment: Callable[[str], str | None] = os.environ.get) -> Path:
    """Return where the history is kept (XDG base directories)."""
    folder = environment("XDG_STATE_HOME") or ""
    return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.local/state"), "sockpq", "shell_history")


def _history() -> History:
    file = history_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o600)
    except OSError:
        return InMemoryHistory()
    return _Discreet(str(file))
