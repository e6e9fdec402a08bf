"""Items and groups: lists of very many of them, and commands that concern very many jobs or queues at once."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import PUTS_MAX, Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.attacks.memory import MEMORY_MB
from tests.hostile.crowd import Crowd

ITEMS = 100_000
GROUPS = 100_000
PAUSED = 20_000
CLOSED, CLOSED_QUEUES, CLOSED_JOBS = 5000, 1000, 50_000
PARTS, DYING, OF_ITEM = 300_000, 100_000, 30_000
WAITERS = 2000
ASKING, LISTERS = 12, 2000
MAP_BYTES = 60_000
SHUT, NAMED = 10_000, 256    # as many as a command leaves out
BEHIND = 1000                # more than these
LISTED = 9999               # groups of one queue
RANKED, RANKED_GROUPS = 4000, 10
AGAIN_S = 1.0
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def fill_items(arena: Arena) -> None:
    """Put 100,000 items of one job each, none of them held."""
    for start in range(0, ITEMS, PUTS_MAX):
        await arena.put_lists(["parts"] * PUTS_MAX, lambda number: f" IS item{start + number}")  # noqa: B023


async def item_lists(arena: Arena) -> None:
    """List all items, those that match nothing, and those that are held."""
    await arena.besiege(ASKING, repeated=b"ITEM LIST\r\nITEM LIST none*\r\nITEM LIST HELD\r\nITEM STAT item7\r\n" * 20)


async def many_lists(arena: Arena) -> None:
    """Ask for all items at the same time, from very many clients."""
    await arena.besiege(LISTERS, opening=b"ITEM LIST\r\n" * 10, again_s=AGAIN_S)


async def fill_groups(arena: Arena) -> None:
    """Put jobs of 100,000 groups."""
    for start in range(0, GROUPS, PUTS_MAX):
        await arena.put_lists(["fair"] * PUTS_MAX, lambda number: f" GROUP g{start + number}")  # noqa: B023


async def group_lists(arena: Arena) -> None:
    """List all groups, and those that match nothing."""
    await arena.besiege(ASKING, repeated=b"GROUP LIST\r\nGROUP LIST none*\r\nSCHED SHOW\r\n" * 20)


async def fill_paused(arena: Arena) -> None:
    """Put a job of one group into each of 20,000 queues."""
    await arena.tell([f"QUEUE CREATE p{number} SCHED GROUPS\r\n" for number in range(PAUSED)])
    for start in range(0, PAUSED, PUTS_MAX):
        await arena.put_lists([f"p{start + number}" for number in range(PUTS_MAX)], lambda number: " GROUP tenant")


async def pauses(arena: Arena) -> None:
    """Pause and resume the group, while clients wait for its jobs or ask for them."""
    names = b"|".join(b"p%d" % number for number in range(2000))
    await asyncio.gather(
        arena.besiege(4, repeated=b"GROUP PAUSE tenant\r\nGROUP RESUME tenant\r\n" * 50),
        arena.besiege(300, opening=b"GETB %b\r\n" % names, again_s=AGAIN_S),
        arena.besiege(4, repeated=b"GET %b EXPIRE 1 THEN LATER\r\nGET %b BY FAIR EXPIRE 1 THEN LATER\r\n" % (
            names, names) * 20))


async def fill_listed(arena: Arena) -> None:
    """Put a job of each of 9,999 groups into one queue."""
    await arena.put_lists(["listed"] * LISTED, lambda number: f" GROUP l{number}")


async def regroupings(arena: Arena) -> None:
    """Let the queue choose by these groups in another way, again and again."""
    kinds = (b"SCHED FAIR", b"SCHED GROUPS GROUPLIMIT 1", b"GROUPORDER ON", b"SCHED FIFO GROUPLIMIT OFF GROUPORDER OFF")
    await arena.besiege(2, repeated=b"".join(b"QUEUE CONFIG listed %b\r\n" % kind for kind in kinds) * 50)


async def fill_ranked(arena: Arena) -> None:
    """Put jobs of ten groups into each of 4,000 queues; one of the groups is in all of them."""
    await arena.tell(["PUT first 0 0 GROUP tenant\r\n", "GET first BY FAIR\r\n"])
    for group in range(RANKED_GROUPS):
        await arena.put_lists([f"ranked{number}" for number in range(RANKED)],
                              lambda number: f" GROUP {f'other{group}' if group else 'tenant'}")      # noqa: B023


async def ranked_pauses(arena: Arena) -> None:
    """Pause and resume this group."""
    await arena.besiege(4, repeated=b"GROUP PAUSE tenant\r\nGROUP RESUME tenant\r\n" * 50)


async def fill_closed(arena: Arena) -> None:
    """Put 50,000 jobs of 5,000 paused groups into 1,000 queues."""
    await arena.tell([f"GROUP PAUSE c{number}\r\n" for number in range(CLOSED)])
    await arena.tell([f"QUEUE CREATE closed{number} SCHED FAIR\r\n" for number in range(CLOSED_QUEUES)])
    for _ in range(CLOSED_JOBS // PUTS_MAX):
        await arena.put_lists([f"closed{number % CLOSED_QUEUES}" for number in range(PUTS_MAX)],
                              lambda number: f" GROUP c{number % CLOSED}")


async def closed(arena: Arena) -> None:
    """Wait for one of the queues, or all of them, while some groups open for moments."""
    await asyncio.gather(
        arena.besiege(WAITERS, opening=lambda number: b"GETB closed%d BY FAIR\r\n" % (
            number % CLOSED_QUEUES) * 10),
        arena.besiege(WAITERS // 4, opening=lambda number: b"GETB %b BY FAIR\r\n" % b"|".join(
            b"closed%d" % one for one in range(CLOSED_QUEUES)) * 10),
        arena.besiege(4, repeated=b"".join(
            b"GROUP RESUME c%d\r\nGROUP PAUSE c%d\r\n" % (one, one) for one in range(500))))


async def fill_shut(arena: Arena) -> None:
    """Put a job into each of 10,000 queues, each of a paused group of its own."""
    await arena.tell([f"GROUP PAUSE s{number}\r\n" for number in range(SHUT)])
    await arena.tell([f"QUEUE CREATE shut{number} SCHED FAIR\r\n" for number in range(SHUT)])
    await arena.put_lists([f"shut{number}" for number in range(SHUT)], lambda number: f" GROUP s{number}")


async def shut(arena: Arena) -> None:
    """Clients ask for a job, or wait for one for a moment: all queues have to be passed over.

    They name the queues: with `*` they would take the ordinary client's jobs.
    """
    names = b"|".join(b"shut%d" % number for number in range(NAMED))
    await asyncio.gather(
        arena.besiege(30, repeated=b"GET %b BY PRIORITY\r\n" % names * 20),
        arena.besiege(30, repeated=b"GETB %b WITHIN 0\r\n" % names * 20))


async def behind(arena: Arena) -> None:
    """Wait for a queue that stands behind very many closed ones, and whose jobs come one by one."""
    names = b"|".join(b"shut%d" % number for number in range(BEHIND)) + b"|behind"
    await asyncio.gather(
        arena.besiege(60, opening=b"GETB %b BY ORDER EXPIRE 1 THEN DONE\r\n" % names * 40, again_s=AGAIN_S),
        arena.besiege(4, repeated=b"PUT behind 0 1\r\nx" * 10))


async def fill_held(arena: Arena) -> None:
    """Put an item with a job in each of 1,000 queues, all of a paused group."""
    create = [f"QUEUE CREATE held{number} SCHED GROUPS\r\n" for number in range(BEHIND)]
    await arena.tell(["GROUP PAUSE held\r\n", *create])
    await arena.put_lists([f"held{number}" for number in range(BEHIND)], lambda number: " IS x GROUP held")


async def behind_of_item(arena: Arena) -> None:
    """Wait for a job of the item behind these, and such jobs come one by one."""
    await asyncio.gather(
        arena.besiege(60, opening=b"GETB * IS x BY ORDER EXPIRE 1 THEN DONE\r\n" * 40, again_s=AGAIN_S),
        arena.besiege(4, repeated=b"PUT opened 0 1 IS x\r\nx" * 10))


async def fill_of_item(arena: Arena) -> None:
    """Put two items: one has jobs in 30,000 queues, most of them delayed."""
    for start in range(0, OF_ITEM, PUTS_MAX):
        await arena.put_lists([f"o{start + number}" for number in range(PUTS_MAX)], lambda number: " IS x DELAY 3000")
    await arena.put_lists([f"o{number}" for number in range(PUTS_MAX)], lambda number: " IS x")
    await arena.put_lists([f"o{number}" for number in range(PUTS_MAX)], lambda number: " IS y")


async def of_item(arena: Arena) -> None:
    """Ask for a job of these in any queue, and wait for one of an item that has none."""
    await asyncio.gather(
        arena.besiege(WAITERS, opening=b"GETB * IS z\r\n" * 10),
        arena.besiege(ASKING, repeated=b"GET * IS z\r\nGET * IS x EXPIRE 1 THEN LATER\r\n" * 20),
        arena.besiege(ASKING, repeated=b"GETB * IS z WITHIN 0\r\nITEM STAT x\r\n"
                                       b"GET * IS y BY PRIORITY EXPIRE 1 THEN LATER\r\n" * 20))


async def fill_parts(arena: Arena) -> None:
    """Put 300,000 jobs of one item."""
    for _ in range(0, PARTS, PUTS_MAX):
        await arena.put_lists(["whole"] * PUTS_MAX, lambda number: " IS whole")


async def cancels(arena: Arena) -> None:
    """Cancel it repeatedly, and meanwhile bring it back and look at it."""
    server = await asyncio.to_thread(arena.server)
    async with Crowd(server, 4, repeated=b"ITEM CANCEL whole\r\nITEM RETRY whole\r\nITEM STAT whole\r\n" * 20):
        await asyncio.sleep(arena.seconds)


async def fill_dying(arena: Arena) -> None:
    """Put 100,000 jobs of one item that die at the first failure."""
    for _ in range(0, DYING, PUTS_MAX):
        await arena.put_lists(["whole"] * PUTS_MAX, lambda number: " IS whole TRIES 1")


async def retries(arena: Arena) -> None:
    """Take them so that they die, and bring them back."""
    await asyncio.gather(
        arena.besiege(8, repeated=b"GET whole COUNT 1000 EXPIRE 1 THEN LATER\r\n"),
        arena.besiege(8, repeated=b"ITEM RETRY whole\r\n" * 50))


async def maps(arena: Arena) -> None:
    """Replace the map of clusters by one that is nearly as large as possible, and ask for it, without end."""
    (answer,) = await arena.dialogue([b"CLUSTER ID\r\n"])
    number = answer.split()[2]
    head = b"CLUSTER main %b 10.0.0.1:11361\n" % number
    rules, count = [head], len(head)
    while count < MAP_BYTES:
        rules.append(b"RULE r%d. main\n" % len(rules))
        count += len(rules[-1])
    text = b"".join(rules)

    def opening(one: int) -> bytes:
        return b"".join(b"MAP SET %d %d\r\n%b" % (at + one * 1000, len(text), text) for at in range(1, 200))
    await arena.besiege(8, opening=opening, repeated=b"MAP\r\n" * 100)


ATTACKS = (
    Attack("item-lists", "ITEM LIST of 100,000 items without end, on 12 connections", item_lists,
           prepare=fill_items, bounds=BOUNDS),
    Attack("many-lists", "2,000 clients ask for the list of 100,000 items", many_lists, prepare=fill_items,
           memory_mb=MEMORY_MB, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=MEMORY_MB)),
    Attack("group-lists", "GROUP LIST of 100,000 groups without end, on 12 connections", group_lists,
           prepare=fill_groups, bounds=BOUNDS),
    Attack("group-pauses", "a group with jobs in 20,000 queues is paused and resumed without end", pauses,
           prepare=fill_paused, bounds=BOUNDS),
    Attack("regroupings", "the settings of a queue with 9,999 groups change without end, on 2 connections", regroupings,
           prepare=fill_listed, bounds=BOUNDS),
    Attack("ranked-pauses", "a group is paused and resumed without end that is ranked in 4,000 queues", ranked_pauses,
           prepare=fill_ranked, bounds=BOUNDS),
    Attack("closed-groups", "2,500 clients wait BY FAIR for jobs of closed groups", closed, prepare=fill_closed,
           bounds=BOUNDS),
    Attack("shut-queues", "clients ask for jobs of queues whose groups are closed, of which there are 10,000", shut,
           prepare=fill_shut, bounds=BOUNDS),
    Attack("behind-shut", "clients wait for a queue that they name behind 1,000 whose groups are closed", behind,
           prepare=fill_shut, bounds=BOUNDS),
    Attack("behind-held", "clients wait for an item whose jobs in 1,000 queues are of a closed group", behind_of_item,
           prepare=fill_held, bounds=BOUNDS),
    Attack("of-item", "clients ask for, and wait for, jobs of items in 30,000 queues", of_item, prepare=fill_of_item,
           bounds=BOUNDS),
    Attack("item-cancel", "an item of 300,000 jobs is cancelled", cancels, prepare=fill_parts,
           bounds=BOUNDS),
    Attack("item-retry", "the 100,000 jobs of an item die, and are brought back without end", retries,
           prepare=fill_dying, bounds=BOUNDS),
    Attack("maps", "MAP SET of 60,000 bytes and MAP, without end", maps, bounds=BOUNDS),
)
