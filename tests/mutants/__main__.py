"""`python -m tests.mutants`: breaks one line at a time, and reports what neither a test nor a seed noticed.

    python -m tests.mutants                             # all without a result; after Ctrl-C, the next run goes on
    python -m tests.mutants --only '*/quorum.py'        # these modules
    python -m tests.mutants --again nothing             # once more, after a new test, what nothing noticed
    python -m tests.mutants --seeds 0                   # a first look, for a list of what may survive
    python -m tests.mutants --report                    # what is known so far

Each mutant is judged on a copy of the tree: first by the tests of its module (modules.py), then by 60 seeds of the
simulation. One that takes too long is caught as well. A survivor is a test that is missing, a line that is not needed,
or equivalent: survivors.toml says why. Exit code 1: something survived, or survivors.toml is outdated.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

import click

from tests.mutants.judging import SEEDS, Unsound, Workshop
from tests.mutants.modules import MODULES
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.results import Name, Result, append_result, read_results, read_survivors, report

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.toml")
RESULTS_FILE = Path(__file__).with_name("results.jsonl")
RESULTS = ("tests", "seeds", "timeout", "nothing")


@click.command()
@click.option("--only", default=["*"], multiple=True, metavar="GLOB",
              help="Modules of these names, such as '*/raft/*', in this order.")
@click.option("--jobs", default=1, help="Mutants judged at once.  [default: 1]")
@click.option("--seeds", default=SEEDS, help=f"Seeds of the simulation for each.  [default: {SEEDS}]")
@click.option("--results", "file", type=click.Path(path_type=Path, dir_okay=False),
              default=RESULTS_FILE, help="Where results are kept.  [default: tests/mutants/results.jsonl]")
@click.option("--again", type=click.Choice(RESULTS), help="Judge those with this result once more.")
@click.option("--report", "reporting", is_flag=True, help="Judge nothing.")
def main(only: Sequence[str], jobs: int, seeds: int, file: Path, again: str | None, *, reporting: bool) -> None:
    """Look for mistakes that no test notices."""
    chosen = list(dict.fromkeys(module for glob in only for module in MODULES if fnmatch(module, glob)))
    if not chosen:
        raise click.UsageError(f"no module is called {' or '.join(only)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = {module: mutants((ROOT / module).read_bytes()) for module in chosen}
    if not reporting:
        results = read_results(file)
        todo = [
            (module, mutant) for module in chosen for mutant in found[module]
            if (module, mutant.key) not in results or results[module, mutant.key].by == again
        ]
        if todo:
            survivors = read_survivors(SURVIVORS)       # last: they take longest, and most likely survive again
            todo.sort(key=lambda one: (one[0], one[1].key) in survivors)
            _judge(todo, jobs, seeds, file)
    keys = {module: [mutant.key for mutant in found[module]] for module in chosen}
    lines, well = report(keys, read_results(file), read_survivors(SURVIVORS))
    print(*lines, sep="\n")
    sys.exit(0 if well else 1)


def _judge(todo: list[tuple[str, Mutant]], jobs: int, seeds: int, file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        try:
            for number, (name, result) in enumerate(_judged(todo, jobs, seeds, Path(folder)), start=1):
                append_result(file, name, result)
                print(f"{number} of {len(todo)}: {result.by:7} {name[0]} {name[1]}   {result.said}", flush=True)
        except KeyboardInterrupt:
            print("interrupted; the next run goes on here")
        except Unsound as error:
            raise click.ClickException(str(error)) from error


def _judged(
    todo: list[tuple[str, Mutant]], jobs: int, seeds: int, folder: Path,
) -> Iterator[tuple[Name, Result]]:
    tests = list(dict.fromkeys(test for module in dict(todo) for test in MODULES[module]))
    workshops = [Workshop.copied(ROOT, folder / str(number), seeds, tests) for number in range(jobs)]
    for workshop in workshops:
        _check_unchanged(todo, workshop.root)
    free: SimpleQueue[Workshop] = SimpleQueue()
    for workshop in workshops:
        free.put(workshop)

    def one(module: str, mutant: Mutant) -> tuple[Name, Result]:
        workshop = free.get()
        try:
            return (module, mutant.key), Result(*workshop.judge(module, mutant, MODULES[module]))
        finally:
            free.put(workshop)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(one, module, mutant) for module, mutant in todo]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for workshop in workshops:
                workshop.close()


def _check_unchanged(todo: Iterable[tuple[str, Mutant]], copy: Path) -> None:
    """Places of mutants match the copy."""
    for module in {module for module, _ in todo}:
        if (copy / module).read_bytes() != (ROOT / module).read_bytes():
            raise click.ClickException(f"{module} has just been changed: start again")


if __name__ == "__main__":
    main()
