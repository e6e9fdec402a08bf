"""`--exec`: runs a program for each job. The body is its standard input; its exit code is the outcome."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from typing import Any

from sockpq.errors import BadArguments
from sockpq.worker.children.process_child import die_with_parent, named_signal

PLACES = re.compile(r"%(.)")
STDERR_CHARACTERS_MAX = 2000


class ProgramFailed(Exception):
    """The program has ended with an exit code other than 0, or could not be started."""


class ExecLine:
    """A line such as `convert - out/%k.png`, split as a shell would; no shell runs it.

    In its words %k is the job's key (or its id), %q the queue, %i the id, %a the attempt, %% a percent sign. None of
    them can be more than a part of a word, and none holds a slash.
    """

    def __init__(self, line: str) -> None:
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise BadArguments(f"--exec {line!r}: {error}") from error
        if not self._words:
            raise BadArguments("--exec needs a program")
        for word in self._words:
            for place in PLACES.findall(word):
                if place not in "kqia%":
                    raise BadArguments(f"--exec: there is no %{place}; there are %k %q %i %a %%")
        program = self._words[0]
        if not PLACES.search(program) and shutil.which(program) is None:
            raise BadArguments(f"--exec: there is no program {program!r} that can be run, here or on the PATH")

    def words(self, job: Any) -> list[str]:
        """Return the command line for this job, as a list of words."""
        key, attempt = (job.meta.key, job.meta.attempt) if job.meta else (None, 1)
        values = {"k": key or str(job.id), "q": job.queue, "i": str(job.id), "a": str(attempt), "%": "%"}
        return [PLACES.sub(lambda place: values[place[1]], word) for word in self._words]

    def __call__(self, job: Any) -> None:
        """Run it, with the worker's standard output. Raises ProgramFailed with the end of its standard error."""
        parent = os.getpid()
        try:
            ended = subprocess.run(
                self.words(job), input=job.data, stderr=subprocess.PIPE, check=False,
                preexec_fn=lambda: die_with_parent(parent),
            )
        except OSError as error:
            raise ProgramFailed(f"{self.words(job)[0]} cannot be started: {error.strerror}") from None
        if ended.returncode:
            stderr_text = ended.stderr.decode("utf-8", "replace")[-STDERR_CHARACTERS_MAX:].strip()
            how = named_signal(-ended.returncode) if ended.returncode < 0 else f"exit code {ended.returncode}"
            raise ProgramFailed(f"{how}: {stderr_text}" if stderr_text else how)
