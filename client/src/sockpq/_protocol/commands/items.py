"""Items: the states of their jobs, holds, retries of failed jobs, and cancellation."""

from __future__ import annotations

from functools import partial
from typing import Any

from sockpq._protocol import arguments
from sockpq._protocol.arguments import HoldThen
from sockpq._protocol.command import Command, Repeat, call, single
from sockpq._protocol.reader import Reader, as_name, as_number, expect, fields_of, lines_of_list, list_of, number_of
from sockpq.errors import BadArguments
from sockpq.model import ItemStat, ItemTotals

NEEDS = ("items",)
HOLD_S_MIN, HOLD_S_MAX = 1, 86_400


@call("any")
def item_stat(item: str) -> Command[ItemStat]:
    """Count the jobs of an item in each state, those that ended since it began, and those that wait for it.

    Raises ItemNotFound.
    """
    return Command(f"ITEM STAT {_item(item)}\r\n".encode(), b"", _stat, Repeat.FREELY, needs=NEEDS)


@call("any")
def items(prefix: str = "", *, held: bool = False) -> Command[list[ItemTotals]]:
    """List the items whose names begin with `prefix`, in no particular order; a `server` that is named may lag.

    `held`: only those with a hold.
    """
    line = f"ITEM LIST {arguments.name(prefix, 'prefix')}*" if prefix != "" else "ITEM LIST"
    line += " HELD" if arguments.switch(held, "held") else ""
    return Command(f"{line}\r\n".encode(), b"", _list, Repeat.FREELY, needs=NEEDS)


@call(retry=True)
def item_retry(item: str) -> Command[int]:
    """Put back all dead and buried jobs of an item, each into the queue in which it was given up; returns how many.

    Their attempts start over. Raises ItemNotFound when it has neither a job nor a hold, ItemCancelled.
    """
    return single(f"ITEM RETRY {_item(item)}", number_of, Repeat.IF_ASKED, slow=True, logged=True, needs=NEEDS)


@call(retry=True, transaction=True)
def item_hold(
    item: str | None = None, *, expire: float | None = None, then: HoldThen | None = None, queue: str | None = None
) -> Command[str]:
    """Hold an item, without `item` a new one that the server names: it does not end before item_release().

    So jobs can be put one by one even if the first ones are done early. After `expire` seconds (600) the item is
    cancelled, as the producer of an incomplete batch has died, or with `then="release"` released; another hold
    resets both. `queue`: if several clusters are in use, a queue into which the jobs are put: its cluster keeps the
    hold. In a transaction the other commands determine the cluster. Returns the item. Raises ItemCancelled. hold()
    does this around a block.
    """
    if item == "NEW":
        raise BadArguments("an item cannot be held by the name NEW, which asks for a new one")
    if then not in (None, "cancel", "release"):
        raise BadArguments(f"then is 'cancel' or 'release', not {then!r}")
    if then is not None and expire is None:
        raise BadArguments("then needs expire: it says what happens when the hold ends")
    line = f"ITEM HOLD {'NEW' if item is None else _item(item)}"
    if expire is not None:
        line += f" EXPIRE {arguments.seconds(expire, 'expire', HOLD_S_MIN, HOLD_S_MAX)}"
        line += f" THEN {then.upper()}" if then else ""
    repeat = Repeat.IF_ASKED if item is None else Repeat.HARMLESS
    place = "" if queue is None else arguments.name(queue, "queue")
    return single(line, partial(_held, item), repeat, logged=True, needs=NEEDS)._replace(place=place)


@call(retry=True, transaction=True)
def item_release(item: str) -> Command[bool]:
    """End the hold of an item; returns whether this has ended the item. Raises ItemNotHeld."""
    return single(f"ITEM RELEASE {_item(item)}", _released, Repeat.IF_ASKED, logged=True, needs=NEEDS)


@call()
def item_cancel(item: str, reason: str | None = None) -> Command[int]:
    """Remove all jobs of an item, and jobs that wait for it to be done; returns how many it has.

    No more of them are handed out, and none can be added. Workers of running ones are notified ("CANCEL" of
    events()), and may end them in any way. A hold stays: the item ends with it at the earliest. `reason`: a word
    for records and logs. Raises ItemNotFound when it has neither a job nor a hold.
    """
    line = f"ITEM CANCEL {_item(item)}" + ("" if reason is None else f" REASON {arguments.reason(reason)}")
    return single(line, number_of, Repeat.HARMLESS, slow=True, logged=True, needs=NEEDS)


def _held(item: str | None, text: str) -> str:
    fields = fields_of(text)
    if item is not None:
        expect(not fields or fields == ["IS", item], "the answer to ITEM HOLD")
        return item
    expect(len(fields) == 2 and fields[0] == "IS", "the answer to ITEM HOLD NEW")
    return as_name(fields[1])


def _released(text: str) -> bool:
    fields = fields_of(text)
    expect(fields in ([], ["FINI"]), "the answer to ITEM RELEASE")
    return bool(fields)


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
    for name in ("held", "cancelling"):
        known[name] = bool(known.get(name))
    return ItemStat(**known)


def _list() -> Reader[list[ItemTotals]]:
    return (yield from list_of(_item_line))


def _item_line(line: str) -> ItemTotals:
    """Parse `<item> <unfinished> <dead> <held> <cancelling>`; later servers may have more words."""
    fields = line.split(" ")
    expect(len(fields) >= 3, "not a line of ITEM LIST")
    return ItemTotals(as_name(fields[0]), as_number(fields[1]), as_number(fields[2]), *(
        word == "1" for word in fields[3:5]
    ))
