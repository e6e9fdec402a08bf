"""`pqctl region follow` and `region stop`: checks that a replica can follow its origin, starts it and stops it."""

from __future__ import annotations

from collections.abc import Iterator

from sockpq import (
    AuthError,
    Busy,
    Client,
    ForbiddenError,
    NotServing,
    NotSupported,
    ReplicaStatus,
    ServerView,
    SockpqError,
    Unavailable,
    Untrusted,
)

from sockpqd.pqctl import replicas
from sockpqd.pqctl.actions.regions.origin import OriginAccess, origin_of
from sockpqd.pqctl.actions.regions.standing import copy_of, must_be_copy
from sockpqd.pqctl.connect import Servers, cluster_of
from sockpqd.pqctl.doctor.check import FAIL, OK, SKIP, WARN, Check
from sockpqd.pqctl.doctor.region_checks import judge
from sockpqd.pqctl.doctor.run import report
from sockpqd.pqctl.health import Health, ask, assess, complaint, id_of, of_one_cluster
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.fence import fenced_for

UNSTOPPED = "; nothing was stopped"
USER, SECRET_FILE, CA = "copy", "/etc/sockpqd/copy.secret", "/etc/sockpqd/origin-ca.crt"     # as in docs/REGIONS.md
UNTRUSTED_ADVICE = "give the authority that signed the origin's certificates, by --origin-ca FILE behind the command"
REFUSED_ADVICE = (
    "give a user of the origin with its secret, by --origin-user and --origin-secret-file behind the command"
)
FEED_ADVICE = "give it --user with the right admin there, and use TLS (--ca): a feed has all data"


def follow(call: Call, origin: OriginAccess | None) -> int:
    """Check the origin if it is given, then let a replica that was stopped follow again."""
    if origin is not None:
        found = list(checks(call, origin_of(call, origin)))
        report(call, found)
        if any(check.state == FAIL for check in found):
            return REFUSED
        stopped = False
        try:
            with cluster_of(call) as (client, servers):
                told = copy_of(call, client, servers)
                stopped = told is not None and replicas.is_stopped(told)
                if stopped:
                    client.cluster_online()
        except (AuthError, Unavailable):
            if stopped:
                raise
            # It is still to be set up, as the checks say.
        return DONE
    with cluster_of(call, leading=True) as (client, servers):
        told = must_be_copy(call, client, servers)
        if replicas.is_stopped(told):
            client.cluster_online()
            call.answer("it follows again", {"following": True})
            return DONE
    if not replicas.follows(told) and any(status.problem for status in told.values()):
        raise Failure(REFUSED, f"{replicas.in_words(told)}; `pqctl region follow ORIGIN` looks for the cause")
    call.answer(replicas.in_words(told), {"following": replicas.follows(told)})
    return DONE


def stop(call: Call, yes: bool) -> int:
    """Stop following. Raises Failure if the cluster is not a replica, so that no service is switched off."""
    with cluster_of(call, leading=True) as (client, servers):
        must_be_copy(call, client, servers, UNSTOPPED)
        confirm("Stop following the origin until `pqctl region follow`?", yes)
        told = must_be_copy(call, client, servers, UNSTOPPED)      # it may have been promoted meanwhile
        client.cluster_offline()
        where, position = _stopped(call, client, servers, told)
    call.answer(f"stopped at position {where} of the origin's log; `pqctl region follow` lets it follow again",
                {"index": position})
    return DONE


def _stopped(
    call: Call, client: Client, servers: Servers, told: dict[str, ReplicaStatus],
) -> tuple[str, int]:
    """Return the position of a stopped replica, in words and as a number; `told`: the earlier answers of its nodes."""
    try:
        now = copy_of(call, client, servers)
    except (Failure, SockpqError):                      # it is stopped, whether a node says where or not
        position = _position(told)
        return f"{position} or shortly after", position
    if now is None:
        raise Failure(REFUSED, "the copy was promoted while it was being stopped: see whether it serves with `pqctl "
                      "cluster status`; `pqctl cluster online` lets it")
    return str(_position(now)), _position(now)


def _position(told: dict[str, ReplicaStatus]) -> int:
    return max((status.position for status in told.values()), default=0)


def checks(call: Call, origin: Call) -> Iterator[Check]:
    """Check whether the cluster of this call can follow the one of `origin`, with the same user and authority."""
    views, given = ask(origin.servers, origin.timeout, origin.access)
    own = of_one_cluster(views, given)
    silent = [complaint(view) for view in views[:given] if view not in own]
    if not own:
        yield Check(FAIL, "origin", "; ".join(silent), _advice([view.error for view in views[:given]]))
        return
    yield (Check(WARN, "origin", "; ".join(silent), "the copy uses the servers that answer") if silent
           else Check(OK, "origin", f"all {len(views)} servers answer" if len(views) > 1 else "its server answers"))
    health = assess(views, given)
    yield feed(own, origin)
    mine, count = ask(call.servers, call.timeout, call.access)
    here = of_one_cluster(mine, count)
    if not here:
        yield Check(SKIP, "replica", "no server of the copy answers yet",
                    f"start its nodes with empty data directories, and with\n{_section(call, origin, own)}")
        return
    if id_of(here) is not None and id_of(here) == id_of(own):
        yield Check(FAIL, "replica", "both are the same cluster", "name servers of the copy with --servers")
        return
    yield level(health, assess(mine, count))
    yield _replica(call, own, origin)


def _advice(errors: list[SockpqError | None]) -> str:
    """Return what to do when no server of the origin can be asked."""
    if any(isinstance(error, Untrusted) for error in errors):
        return UNTRUSTED_ADVICE
    if any(isinstance(error, AuthError) for error in errors):
        return REFUSED_ADVICE
    return "correct the addresses, or look at the network between the two"


def feed(own: list[ServerView], origin: Call) -> Check:
    """Check that the servers would feed this user a copy."""
    bad, busy = {}, []
    with origin.access.client([view.server for view in own], origin.timeout) as client:
        for view in own:
            try:
                client.feed_check(view.server, timeout=origin.timeout)
            except ForbiddenError:
                bad[view.server] = "feeds no copy to this user, or not over this connection"
            except NotServing:
                bad[view.server] = "is a copy of another cluster itself"
            except NotSupported:
                bad[view.server] = "is of a version without copies in another region"
            except Busy:
                busy.append(view.server)
            except SockpqError as error:
                bad[view.server] = str(error)
        fenced = _fenced(client, own, origin)
    if fenced is not None:
        return Check(FAIL, "feed", f"the origin was switched off for good: the cluster {fenced} has taken its place",
                     "that one can be followed")
    if bad:
        told = "; ".join(f"{server} {why}" for server, why in bad.items())
        copy = any("itself" in why for why in bad.values())
        return Check(FAIL, "feed", told, "name the servers of its origin" if copy else FEED_ADVICE)
    if busy:
        state = WARN if len(busy) < len(own) else FAIL
        feeds, it = ("feeds", "it") if len(busy) == 1 else ("feed", "they")
        return Check(state, "feed", f"{', '.join(busy)} already {feeds} as many copies as {it} may", "end one of them")
    return Check(OK, "feed", "every server would feed a copy to this user")


def _fenced(client: Client, own: list[ServerView], origin: Call) -> str | None:
    try:
        client.cluster_replica(own[0].server, timeout=origin.timeout)
    except SockpqError as error:
        return fenced_for(error)
    return None


def level(origin: Health, replica: Health) -> Check:
    """Check that the programs of the replica know the feature level of the origin."""
    there = max((node.cluster_level for node in origin.nodes if node.cluster_level is not None), default=None)
    known = {node.name: node.level for node in replica.nodes if node.level is not None}
    old = sorted(name for name, own in known.items() if there is not None and own < there)
    if old:
        return Check(FAIL, "level", f"the origin has feature level {there}, which is unknown to {', '.join(old)}",
                     "upgrade the nodes of the copy first")
    return Check(OK, "level", f"the copy knows the feature level {there or '-'} of its origin")


def _replica(call: Call, own: list[ServerView], origin: Call) -> Check:
    """Check that the cluster of this call is, or can be, a copy of this origin."""
    with cluster_of(call) as (client, servers):
        try:
            told = copy_of(call, client, servers)
        except ForbiddenError:
            return Check(SKIP, "replica", "its servers do not say how they follow to this user", "use one with admin")
        except Failure as failure:
            return Check(FAIL, "replica", str(failure))
        if told is None:
            used = client.total()
            if used.queues or used.jobs:
                return Check(FAIL, "replica", "this cluster has jobs of its own, so it cannot become a copy",
                             "start its nodes with empty data directories")
            return Check(WARN, "replica", "its nodes are not configured as a copy",
                         f"empty their data directories, and start them with\n{_section(call, origin, own)}")
    for status in told.values():
        if status.origin is not None and id_of(own) not in (None, status.origin):
            return Check(FAIL, "replica", f"it is a copy of the cluster {status.origin}, not of {id_of(own)}",
                         "correct replica.of, or empty the data directories of the copy to begin again")
    if replicas.is_stopped(told):
        return Check(OK, "replica", "it was stopped: this command lets it follow again")
    found = judge(told)._replace(name="replica")
    if found.state == FAIL:
        return found._replace(advice="these checks are by the user and the authority of this command; the nodes of the "
                       "copy have others, in their files: compare user, secret_file and ca of [replica]")
    return found


def _section(call: Call, origin: Call, own: list[ServerView]) -> str:
    """Return the section that the nodes of a copy of this origin need; its user is not the operator."""
    servers = sorted({line.client for view in own for line in view.nodes if line.client is not None})
    lines = ["[replica]", f'of = "{",".join(servers)}"']
    if origin.access.user is not None:
        user = USER if origin.access.user == call.access.user else origin.access.user
        lines += [f'user = "{user}"        # of the origin, with the right admin', f'secret_file = "{SECRET_FILE}"']
    if origin.access.tls:
        lines.append(f'ca = "{CA}"')
    return "\n".join(lines)
