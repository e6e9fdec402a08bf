"""`pqctl queue`: what TOTAL and RUNLIST tell."""

from __future__ import annotations

from collections.abc import Sequence

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


def show_list(call: Call, names: Sequence[str]) -> int:
    """The counts of every queue whose name can be known."""
    with reading(call) as (client, server):
        count = client.total(server=server).queues
        known = sorted({*names, *(job.queue for job in client.running(server=server))})
        found = [(name, client.total(name, server=server)) for name in known]
    others = max(count - sum(totals.queues for _, totals in found), 0)
    if call.as_json:
        queues = [{"name": name, **_counts(totals)} for name, totals in found]
        call.answer("", {"queues": queues, "others": others, "complete": not others})
        return DONE

    from pqctl.table import Column, print_rows

    if found:
        columns = (Column("queue", folds=True), *(Column(title, figures=True) for title in _counts(Totals(0, 0, 0, 0))))
        rows = [(name, *(f"{count:,}" for count in _counts(totals).values())) for name, totals in found]
        print_rows(call, columns, rows)
    if others:
        call.print(f"and {counted(others, 'queue')} without running jobs, whose names the servers do not tell")
    elif not found:
        call.print("there is no queue")
    return DONE


def _counts(totals: Totals) -> dict[str, int]:
    return {"waiting": totals.jobs, "running": totals.running, "priorities": totals.priorities}
