"""Writes the man page and the completions of pqworker into client/manual, from its options: `make manual`."""

from __future__ import annotations

import sys
from pathlib import Path

from sockpq.worker.pool.fetch import POLICIES
from sockpq.worker.pool.settings import KINDS, STRATEGIES
from sockpq.worker.program.options import KEYS, LOG_FORMATS

FOLDER = Path(__file__).parents[1] / "manual"
CONFIG = ("config", "FILE", "options in TOML, called as here; the command line goes first")
WORDS = {"pool": KINDS, "strategy": STRATEGIES, "by": POLICIES, "log-format": LOG_FORMATS}
BEGIN = """.TH "PQWORKER" "1" "" "sockpq" "User Commands"
.SH NAME
pqworker \\- run the tasks of an app, or a program for each job, from a sockpqd cluster
.SH SYNOPSIS
.B pqworker
.RI [ option " ...] " MODULE : APP
.br
.B pqworker \\-\\-exec
.I LINE
.B \\-\\-queues
.I A,B
.RI [ option " ...]"
.SH DESCRIPTION
Takes jobs from the queues of an app and has children work on them: processes, threads or coroutines. A job is finished
when its function has returned; while a child works on it, its lease is renewed. A failed job is tried again after a
pause, and given up after its last try.
.SH OPTIONS
"""
END = """.SH SIGNALS
.TP
.B TERM, INT
take no more jobs, finish what runs, give back the rest, end; the second one is as QUIT
.TP
.B QUIT
end at once: children are killed, their jobs go back
.TP
.B HUP
read the configuration file again
.SH EXIT STATUS
.TP
.B 0
it has ended in an orderly way
.TP
.B 1
a fault of the worker itself
.TP
.B 64
an option, the configuration or the app is not good
.SH ENVIRONMENT
.TP
.B SOCKPQ_SERVERS
the servers, unless the app or \\-\\-servers names them
.SH FILES
.TP
.I ~/.config/sockpq/config.toml, /etc/sockpq.toml
servers, user and secret, as for
.BR pqctl (1)
.SH SEE ALSO
.BR pqctl (1),
docs/WORKERS.md of the sources
"""


def options() -> list[tuple[str, str, str]]:
    """Return the name, value and meaning of each option."""
    return [CONFIG, *((key, one.metavar, one.help.replace("%%", "%")) for key, one in KEYS.items() if key != "app")]


def page() -> str:
    """Return the man page of pqworker."""
    lines = []
    for name, value, told in options():
        short = KEYS[name].short if name in KEYS else ""
        flags = ", ".join(_plain(flag) for flag in (short, f"--{name}") if flag)
        lines += [".TP", f".BI \"{flags} \" {_plain(value)}" if value else f".B {flags}", _plain(told)]
    return BEGIN + "\n".join(lines) + "\n" + END


def bash() -> str:
    """Return the completion script for bash."""
    cases = "\n".join(
        f'        --{name}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word")); return ;;'
        for name, words in WORDS.items()
    )
    names = " ".join(f"--{name}" for name, _, _ in options())
    return f"""# Completes the arguments of pqworker.
_pqworker() {{
    local word=${{COMP_WORDS[COMP_CWORD]}}
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
{cases}
        --config) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    COMPREPLY=($(compgen -W "-c {names} --help --version" -- "$word"))
}}
complete -o default -F _pqworker pqworker
"""


def zsh() -> str:
    """Return the completion script for zsh."""
    lines = []
    for name, value, told in options():
        words = f":({' '.join(WORDS[name])})" if name in WORDS else ":_files" if name == "config" else ":"
        told = told.replace("[", "(").replace("]", ")").replace("'", "").replace(":", "\\:")
        value = value.replace(":", "\\:")
        lines.append(f"    '--{name}[{told}]" + (f":{value}{words}'" if value else "'"))
    return "#compdef pqworker\n_arguments \\\n" + " \\\n".join([*lines, "    '::MODULE\\:APP:'"]) + "\n"


def fish() -> str:
    """Return the completion script for fish."""
    lines = []
    for name, value, told in options():
        needs = f" -x -a '{' '.join(WORDS[name])}'" if name in WORDS else " -r" if name == "config" else " -x"
        told = told.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c pqworker -l {name}{needs if value else ''} -d '{told}'")
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """Return the content of every file to write."""
    return {"pqworker.1": page(), "pqworker.bash": bash(), "pqworker.zsh": zsh(), "pqworker.fish": fish()}


def _plain(line: str) -> str:
    """Escape a line for troff."""
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    for file, content in files().items():
        (FOLDER / file).write_text(content, "utf-8")
    sys.exit(0)
