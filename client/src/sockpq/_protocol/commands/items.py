"""Items: what the jobs that share one are doing, and the retry of those that failed."""

from __future__ import annotations

from typing import Any

from sockpq._protocol import arguments
from sockpq._protocol.command import Command, Repeat, call, single
from sockpq._protocol.reader import Reader, as_name, as_number, expect, lines_of_list, number_of
from sockpq.model import ItemStat, ItemTotals

NEEDS = ("movequeue",)


@call("any")
def item_stat(item: str) -> Command[ItemStat]:
    """Count the jobs of an item in each state, those that ended since it began, and those that wait for it.

    Raises ItemNotFound.
    """
    return Command(f"ITEM STAT {_item(item)}\r\n".encode(), b"", _stat, Repeat.FREELY, needs=NEEDS)


@call("any")
def items(prefix: str = "") -> Command[list[ItemTotals]]:
    """List the items whose names begin with `prefix`, in no particular order; a `server` that is named may lag."""
    line = f"ITEM LIST {arguments.name(prefix, 'prefix')}*\r\n" if prefix != "" else "ITEM LIST\r\n"
    return Command(line.encode(), b"", _list, Repeat.FREELY, needs=NEEDS)


@call(retry=True)
def item_retry(item: str) -> Command[int]:
    """Put all dead and buried jobs of an item back, each to the queue in which it was given up; returns how many.

    Their attempts start over. Raises ItemNotFound when it has no job.
    """
    return single(f"ITEM RETRY {_item(item)}", number_of, Repeat.IF_ASKED, slow=True, logged=True, needs=NEEDS)


def _item(name: str) -> str:
    return arguments.name(name, "item")


def _stat() -> Reader[ItemStat]:
    """Read `<figure> <value>` lines; later servers may have more of them."""
    figures: dict[str, Any] = {}
    for line in (yield from lines_of_list()):
        word, _, value = line.partition(" ")
        figures[word.lower()] = as_number(value)
    known = {name: figures[name] for name in ItemStat._fields if name in figures}
    expect("ready" in known and "waiters" in known, "the answer to ITEM STAT")
    return ItemStat(**known)


def _list() -> Reader[list[ItemTotals]]:
    return [_item_line(line) for line in (yield from lines_of_list())]


def _item_line(line: str) -> ItemTotals:
    """Parse `<item> <unfinished> <dead>`; later servers may have more words."""
    fields = line.split(" ")
    expect(len(fields) >= 3, "not a line of ITEM LIST")
    return ItemTotals(as_name(fields[0]), as_number(fields[1]), as_number(fields[2]))
