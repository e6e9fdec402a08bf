"""The table of all requests under /v1, with the commands of the protocol that each of them executes.

tests/http/test_catalog.py compares it with the commands and the extensions of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sockpq_http.exchange import views as seen
from sockpq_http.routes import (
    cluster,
    events,
    find,
    groups,
    items,
    jobs,
    named,
    numbered,
    pulses,
    queues,
    running,
    takes,
    topics,
    transactions,
)


class Route(NamedTuple):
    """One request: its method and path, the function that answers it, the model of its answer, and its commands.

    `keyed`: it takes an Idempotency-Key. `extra`: added to its OpenAPI description.
    """

    method: str
    path: str
    run: Callable[..., Any]
    view: Any
    commands: tuple[str, ...]
    keyed: bool = False
    status: int = 200
    extra: dict[str, Any] | None = None
    responses: dict[int | str, dict[str, Any]] | None = None


G, P, C, D, U = "GET", "POST", "PATCH", "DELETE", "PUT"
ID, NUMBER, QUEUE, KEY, PLACE = (
    "/jobs/{job_id}", "/jobs/number/{number}", "/queues/{queue}", "/queues/{queue}/keys/{job_key}",
    "/queues/{queue}/places/{seq}",
)
PEEK, CHANGE, DELETE, KICK = ("PEEK",), ("CHANGE",), ("DELETE",), ("KICK",)

# fmt: off
ROUTES: dict[str, tuple[Route, ...]] = {
    "jobs": (
        Route(P, f"{QUEUE}/jobs", jobs.put, jobs.PutView, ("PUT", "PUTS"), True, 201,
              jobs.PUT_BODY),
        Route(P, "/jobs", jobs.put_to, seen.CountView, ("PUT",), True, 201),
        Route(P, f"{QUEUE}/call", jobs.call, seen.JobView, ("PUT",)),
        Route(P, "/topics/{topic}/jobs", jobs.publish, seen.CountView, ("PUT",), True, 201),
        Route(G, "/jobs", running.running, seen.JobsView, ("RUNLIST",)),
        Route(P, "/jobs/done", running.done_many, running.AllFinishedView, ("DONE",)),
        Route(P, "/jobs/later", running.later_many, running.AllRunningView, ("LATER",)),
        Route(P, "/jobs/touch", running.touch_many, running.AllRunningView, ("TOUCH",)),
        Route(G, ID, running.peek, seen.JobView, PEEK),
        Route(C, ID, running.change, seen.ChangedView, CHANGE, True),
        Route(D, ID, running.delete, seen.FinishedView, DELETE, True),
        Route(P, f"{ID}/done", running.done, seen.FinishedView, ("DONE",), True),
        Route(P, f"{ID}/later", running.later, seen.ChangedView, ("LATER",), True),
        Route(P, f"{ID}/touch", running.touch, seen.LeaseView, ("TOUCH",), True),
        Route(P, f"{ID}/bury", running.bury, seen.FinishedView, ("BURY",), True),
        Route(P, f"{ID}/move", running.move, seen.FinishedView, ("MOVE",), True),
    ),
    "takes": (
        Route(P, f"{QUEUE}/take", takes.take, seen.JobsView, ("GET", "GETB", "GETBE"), responses=takes.RATE),
        Route(P, "/take", takes.take_of_several, seen.JobsView, ("GET", "GETB", "GETBE", "POLICY")),
        Route(P, f"{NUMBER}/take", takes.take_number, seen.JobsView, ("GET",)),
    ),
    "jobs by number, key and place": (
        Route(G, NUMBER, numbered.get, seen.JobView, PEEK),
        Route(C, NUMBER, numbered.change, seen.ChangedView, CHANGE, True),
        Route(D, NUMBER, numbered.delete, seen.FinishedView, DELETE, True),
        Route(G, f"{NUMBER}/await", numbered.wait, numbered.EndView, ("AWAIT",)),
        Route(G, f"{NUMBER}/stat", numbered.stat, numbered.StatView, ("JOB STAT",)),
        Route(G, f"{NUMBER}/result", numbered.result, numbered.JobResultView, PEEK),
        Route(G, f"{NUMBER}/error", numbered.error, numbered.ErrorView, PEEK),
        Route(P, f"{NUMBER}/kick", numbered.kick, seen.CountView, KICK, True),
        Route(P, f"{NUMBER}/retry", numbered.retry, seen.CountView, KICK),
        Route(D, f"{NUMBER}/record", numbered.forget, seen.ChangedView, DELETE),
        Route(G, KEY, named.get, seen.JobView, PEEK),
        Route(C, KEY, named.change, seen.ChangedView, CHANGE, True),
        Route(D, KEY, named.delete, seen.FinishedView, DELETE, True),
        Route(G, f"{KEY}/await", named.wait, numbered.EndView, ("AWAIT",)),
        Route(G, f"{KEY}/error", named.error, numbered.ErrorView, PEEK),
        Route(G, PLACE, named.get_place, seen.JobView, PEEK),
        Route(C, PLACE, named.change_place, seen.ChangedView, CHANGE, True),
        Route(D, PLACE, named.delete_place, seen.FinishedView, DELETE, True),
        Route(P, f"{PLACE}/kick", named.kick_place, seen.CountView, KICK, True),
    ),
    "queues": (
        Route(G, "/queues", queues.list_, queues.QueuesView, ("QUEUE LIST",)),
        Route(P, "/queues", queues.create, queues.SettingsView, ("QUEUE CREATE",), status=201),
        Route(G, f"{QUEUE}/stats", queues.stats, queues.CountersView, ("QUEUE STAT",)),
        Route(G, f"{QUEUE}/config", queues.config, queues.SettingsView, ("QUEUE CONFIG",)),
        Route(C, f"{QUEUE}/config", queues.configure, queues.SettingsView, ("QUEUE CONFIG",)),
        Route(D, QUEUE, queues.delete, seen.ChangedView, ("QUEUE DELETE",)),
        Route(P, f"{QUEUE}/pause", queues.pause, seen.ChangedView, ("QUEUE PAUSE",)),
        Route(P, f"{QUEUE}/resume", queues.resume, seen.ChangedView, ("QUEUE RESUME",)),
        Route(P, f"{QUEUE}/purge", queues.purge, seen.CountView, ("QUEUE PURGE",)),
        Route(P, f"{QUEUE}/move", queues.move, queues.MovedView, ("QUEUE MOVE",)),
        Route(P, f"{QUEUE}/kick", queues.kick, seen.CountView, KICK),
        Route(G, f"{QUEUE}/jobs", queues.jobs, seen.JobsView, PEEK),
        Route(G, "/totals", queues.totals, queues.TotalsView, ("TOTAL",)),
    ),
    "items": (
        Route(G, "/items", items.list_, items.ItemsView, ("ITEM LIST",)),
        Route(P, "/items", items.hold_new, items.HeldView, ("ITEM HOLD",), True),
        Route(G, "/items/{item}", items.stat, items.ItemView, ("ITEM STAT",)),
        Route(P, "/items/{item}/hold", items.hold, items.HeldView, ("ITEM HOLD",), True),
        Route(P, "/items/{item}/release", items.release, items.ReleasedView, ("ITEM RELEASE",), True),
        Route(P, "/items/{item}/cancel", items.cancel, seen.CountView, ("ITEM CANCEL",)),
        Route(P, "/items/{item}/retry", items.retry, seen.CountView, ("ITEM RETRY",)),
    ),
    "groups": (
        Route(G, "/groups", groups.list_, groups.GroupsView, ("GROUP LIST",)),
        Route(G, "/groups/{group}", groups.get, groups.GroupConfigView, ("GROUP CONFIG",)),
        Route(C, "/groups/{group}", groups.configure, groups.GroupConfigView, ("GROUP CONFIG",)),
        Route(D, "/groups/{group}", groups.delete, seen.ChangedView, ("GROUP DELETE",)),
        Route(P, "/groups/{group}/pause", groups.pause, seen.ChangedView, ("GROUP PAUSE",)),
        Route(P, "/groups/{group}/resume", groups.resume, seen.ChangedView, ("GROUP RESUME",)),
        Route(G, "/groups/{group}/share", groups.share, groups.ShareView, ("SCHED GROUP",)),
        Route(G, "/fair/levels", groups.levels, groups.LevelsView, ("SCHED SHOW",)),
        Route(G, "/fair/config", groups.fair_config, queues.SettingsView, ("SCHED CONFIG",)),
        Route(C, "/fair/config", groups.configure_fair, queues.SettingsView, ("SCHED CONFIG",)),
    ),
    "pulses": (
        Route(G, "/pulses", pulses.list_, pulses.PulsesView, ("PULSE LIST",)),
        Route(P, "/pulses", pulses.create, pulses.FiguresView, ("PULSE CREATE",), status=201),
        Route(G, "/pulses/{pulse}", pulses.stat, pulses.FiguresView, ("PULSE STAT",)),
        Route(C, "/pulses/{pulse}", pulses.configure, pulses.FiguresView, ("PULSE CONFIG",)),
        Route(D, "/pulses/{pulse}", pulses.delete, seen.ChangedView, ("PULSE DELETE",)),
        Route(U, "/pulses/{pulse}/payload", pulses.set_payload, seen.ChangedView, ("PULSE SET",)),
        Route(P, "/pulses/{pulse}/wait", pulses.wait, pulses.TurnView, ("PULSE WAIT",)),
        Route(P, "/pulses/{pulse}/result", pulses.result, seen.ChangedView, ("PULSE RESULT",)),
    ),
    "topics": (
        Route(G, "/topics", topics.list_, topics.BindingsView, ("TOPIC LIST",)),
        Route(P, "/topics/{topic}/bindings", topics.bind, seen.ChangedView, ("TOPIC BIND",)),
        Route(D, "/topics/{topic}/bindings", topics.unbind, seen.ChangedView, ("TOPIC UNBIND",)),
        Route(D, "/topics/{topic}", topics.delete, seen.ChangedView, ("TOPIC DELETE",)),
        Route(P, "/channels/{channel}/messages", topics.notify, topics.HeardView, ("NOTIFY",)),
    ),
    "transactions": (
        Route(P, "/transactions", transactions.execute, transactions.ResultsView, ("BEGIN", "COMMIT"), True),
    ),
    "find": (
        Route(G, "/find", find.find, find.FoundView, ("FIND",)),
    ),
    "events": (
        Route(G, "/events", events.events, None, ("SUBSCRIBE", "UNSUBSCRIBE"), responses=events.STREAM),
    ),
    "cluster": (
        Route(G, "/cluster", cluster.status, cluster.ClusterView, ("CLUSTER STATUS", "CLUSTER ID", "CAPS")),
        Route(G, "/cluster/map", cluster.cluster_map, cluster.MapView, ("MAP",)),
        Route(G, "/cluster/config", cluster.config, queues.SettingsView, ("CONFIG",)),
        Route(C, "/cluster/config", cluster.configure, queues.SettingsView, ("CONFIG",)),
        Route(G, "/workers", cluster.workers, cluster.WorkersView, ("WORKER LIST",)),
        Route(C, "/workers/{worker}", cluster.configure_worker, seen.ChangedView, ("WORKER SET",)),
    ),
}
# fmt: on

# Commands that have no place here, and the reason.
LEFT_OUT = {
    **dict.fromkeys(
        ("SESSION", "SESSION CLOSE", "SESSION KEEP", "TAKEN"),
        "a request has no connection of its own; the sessions of this program make each call happen once",
    ),
    "ROLLBACK": "a transaction is one request: it is sent as a whole or not at all",
    "WORKER": "the heartbeat of a pool belongs to its session",
    "AUTH": "each request has its credentials",
    **dict.fromkeys(("PING", "INTERCONNECT", "CLUSTER LEADER", "SYNC"), "of connections; here /readyz answers"),
    **dict.fromkeys(("HELP", "QUIT"), "of people who type commands"),
    **dict.fromkeys(
        ("SNAPSHOT", "CLONE", "SESSION LIST", "SESSION END", "USER SET", "USER DELETE", "USER LIST", "MAP SET",
         "CLUSTER HASH", "CLUSTER ADD", "CLUSTER REMOVE", "CLUSTER TRANSFER", "CLUSTER ONLINE", "CLUSTER OFFLINE",
         "CLUSTER SNAPSHOT", "CLUSTER FEED", "CLUSTER PROMOTE", "CLUSTER FENCED", "CLUSTER REPLICA", "OFFLINE",
         "ONLINE", "SHUTDOWN"),
        "an operator's, with pqctl: no program needs it, and it should not be reachable from outside",
    ),
}
