"""`pqctl queue`: what TOTAL and QUEUE LIST tell."""

from __future__ import annotations

from sockpq import Totals

from pqctl.call import Call
from pqctl.exits import DONE
from pqctl.steering import reading
from pqctl.text import counted


def show_stat(call: Call, name: str | None) -> int:
    """The counts of one queue or of all."""
    with reading(call) as (client, server):
        totals = client.total(name, server=server)
    whose = "all queues" if name is None else name
    priorities = counted(totals.priorities, "priority", "priorities")
    sentence = f"{whose}: {counted(totals.jobs, 'job')} waiting in {priorities}, {totals.running:,} running"
    if name is None:
        sentence += f"; {counted(totals.queues, 'queue')}"
    call.answer(sentence, {"queue": name, "queues": totals.queues, **_counts(totals)})
    return DONE


def show_list(call: Call, prefix: str) -> int:
    """The counts of every queue whose name begins with `prefix`."""
    with reading(call) as (client, server):
        found = sorted(client.queues(prefix, server=server))
    if call.as_json:
        queues = [{"name": queue.name, "waiting": queue.ready, "running": queue.running} for queue in found]
        call.answer("", {"queues": queues})
        return DONE

    from pqctl.table import Column, print_rows

    if found:
        columns = (Column("queue", folds=True), Column("waiting", figures=True), Column("running", figures=True))
        print_rows(call, columns, [(queue.name, f"{queue.ready:,}", f"{queue.running:,}") for queue in found])
    else:
        call.print(f"there is no queue whose name begins with {prefix}" if prefix else "there is no queue")
    return DONE


def _counts(totals: Totals) -> dict[str, int]:
    return {"waiting": totals.jobs, "running": totals.running, "priorities": totals.priorities}
