"""`pqctl queue list` and `stat`: the job counts of queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sockpq import Totals

from sockpqd.pqctl.actions.existence import must_exist
from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE
from sockpqd.pqctl.output.text import counted, lasting, sized

TOLD = {"ready", "running", "priorities", "oldest_s"}       # mentioned in the sentence already
UNTOLD = {"urgent", "pause_s"}      # for programs
SINGULAR = {"pauses": "pause", "waiters": "waiter"}      # all other counters are of what was done to jobs: 1 put, 2 put
BYTES = "_bytes"        # suffix of counters of bytes
PAST = "total_"         # prefix of counters since the queue was created


def show_stat(call: Call, name: str | None) -> int:
    """Print the counts of one queue, which must exist, or of all."""
    with reading(call) as (client, server):
        totals = client.total(name, server=server)
        counters = None if name is None else must_exist(client, name, server) or None
    whose = "all queues" if name is None else name
    priorities = f" in {counted(totals.priorities, 'priority', 'priorities')}" if totals.jobs else ""
    sentence = f"{whose}: {counted(totals.jobs, 'job')} waiting{priorities}, {totals.running:,} running"
    if name is None:
        sentence += f"; {counted(totals.queues, 'queue')}"
    now = {word: value for word, value in (counters or {}).items() if not word.startswith(PAST)}
    if now.get("oldest_s"):
        sentence += f"; the oldest for {lasting(now['oldest_s'])}"
    sentence += in_words("", {word: value for word, value in now.items() if word not in TOLD | UNTOLD})
    sentence += in_words("since it began ", {
        word.removeprefix(PAST): value for word, value in (counters or {}).items() if word.startswith(PAST)
    })
    told = {"queue": name, "queues": totals.queues, **_counts(totals)}
    call.answer(sentence, told if name is None else {**told, "counters": counters})
    return DONE


def show_list(call: Call, prefix: str) -> int:
    """Print the counts of every queue whose name begins with `prefix`."""
    with reading(call) as (client, server):
        found = sorted(client.queues(prefix, server=server))
    if call.as_json:
        call.answer("", {"queues": [
            {"name": queue.name, "waiting": queue.ready + queue.delayed, "ready": queue.ready, "delayed": queue.delayed,
             "running": queue.running, "dead": queue.dead,
             "buried": queue.buried}
            for queue in found
        ]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("queue", folds=True)]
        titles = ("waiting", "ready", "delayed", "running", "dead", "buried")
        columns += [Column(title, figures=True) for title in titles]
        print_rows(call, columns, [
            (queue.name, f"{queue.ready + queue.delayed:,}", f"{queue.ready:,}", f"{queue.delayed:,}",
             f"{queue.running:,}", f"{queue.dead:,}", f"{queue.buried:,}") for queue in found
        ])
    else:
        call.print(f"there is no queue whose name begins with {prefix}" if prefix else "there is no queue")
    return DONE


def sum_of(found: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, object]]:
    """Add up what `show_stat` answered for several clusters: the sentence for people, and the keys of --json."""
    waiting, running, queues = (sum(one[word] for one in found) for word in ("waiting", "running", "queues"))
    return (f"together: {counted(waiting, 'job')} waiting, {running:,} running; {counted(queues, 'queue')}",
            {"together": {"waiting": waiting, "running": running, "queues": queues}})


def in_words(lead: str, counters: dict[str, int]) -> str:
    """Format the counters that are not zero as the end of a sentence."""
    named = {word: SINGULAR.get(word, word) if value == 1 else word for word, value in counters.items()}
    more = [_counter(word, named[word], value) for word, value in counters.items() if value]
    return f"; {lead}{', '.join(more)}" if more else ""


def _counter(word: str, named: str, value: int) -> str:
    """Format one counter; those of bytes with their unit: "1.5 KiB retained"."""
    if word.endswith(BYTES):
        return f"{sized(value)} {word.removesuffix(BYTES).replace('_', ' ')}"
    return f"{value:,} {named.replace('_', ' ')}"


def _counts(totals: Totals) -> dict[str, int]:
    return {"waiting": totals.jobs, "running": totals.running, "priorities": totals.priorities}


def show_topics(call: Call, prefix: str) -> int:
    """Print the bindings of topics (TOPIC LIST)."""
    with reading(call) as (client, server):
        found = client.topic_list(prefix, server=server)
    if call.as_json:
        call.answer("", {"bindings": [one._asdict() for one in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column(title, folds=True) for title in ("topic", "queue", "pattern")]
        print_rows(call, columns, [(one.topic, one.queue, one.pattern or "-") for one in found])
    else:
        call.print(f"nothing is bound to a topic whose name begins with {prefix}" if prefix else
                   "nothing is bound to a topic")
    return DONE
