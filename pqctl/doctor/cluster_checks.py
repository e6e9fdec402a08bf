"""The checks of `pqctl doctor` that ask the servers."""

from __future__ import annotations

from collections.abc import Sequence

from sockpq import AuthError, ServerView, Untrusted

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor import access_checks, region_checks
from sockpqd.pqctl.doctor.check import FAIL, OK, SKIP, WARN, Check
from sockpqd.pqctl.health import (
    Health,
    ask,
    assess,
    complaint,
    in_contact,
    in_words,
    is_full,
    of_one_cluster,
    own_line,
    strangers,
)
from sockpqd.pqctl.output.text import counted
from sockpqd.pqctl.replicas import part_of

RENEW = ("put a certificate in its place that is valid, for the address that is dialed and from the CA of --ca, and "
         "send SIGHUP to that node")
SWITCHED_OFF = "the service is switched off: see region"
CLOCKS_APART_MS = 1000      # AT is in seconds
CLOCKS_BLUR_MS = 100        # a message between two nodes can be delayed by this much


def look(servers: Sequence[str], timeout: float, access: ClusterAccess) -> list[Check]:
    """Run all checks, ordered so that the first failure is likely to explain the others."""
    views, given = ask(servers, timeout, access)
    own = of_one_cluster(views, given)
    health = assess(views, given)
    checks = [servers_answer(views[:given], own), *access_checks.look(views, access)]
    part = part_of(health.named, timeout, access)
    region = region_checks.look(part)
    off = region is not None and health.switched_off        # it says why: for a copy in another region, or of one
    if not own and any(isinstance(view.error, AuthError) for view in views):
        checks.append(Check(SKIP, "leader", "servers answer this only to users that they accept"))
    else:
        untrusted = any(isinstance(view.error, Untrusted) for view in views)
        checks.append(Check(SKIP, "leader", SWITCHED_OFF) if off
                      else leader(health, copy=part is not None, untrusted=untrusted))
    if own:
        checks += [members(health), peers(own), clocks(own), versions(health)]
        checks.append(Check(SKIP, "online", SWITCHED_OFF) if off else switched_off(health))
    return checks if region is None else [*checks, region]


def servers_answer(views: Sequence[ServerView], own: Sequence[ServerView]) -> Check:
    """Check that every server given answers, and belongs to the same cluster."""
    silent = [complaint(view) for view in views if _is_of_no_use(view)]
    full = [complaint(view) for view in views if is_full(view)]
    if full and len(full) == len(silent):
        return Check(WARN if len(full) < len(views) else FAIL, "servers", "; ".join(full),
                     "ask on the nodes themselves or as an administrator, for whom there are further places; close "
                     "connections, or raise limits.connections_max")
    if silent:
        state = FAIL if len(silent) == len(views) else WARN
        if all(isinstance(view.error, Untrusted) for view in views if _is_of_no_use(view)):
            return Check(state, "servers", "; ".join(silent), RENEW)
        return Check(state, "servers", "; ".join(silent),
                     f"start {'it' if len(silent) == 1 else 'them'}, or correct the list of servers")
    foreign = strangers(views, own)
    if foreign:
        return Check(FAIL, "servers", in_words(foreign, own), "correct the list of servers")
    return Check(OK, "servers", "the one given answers" if len(views) == 1 else f"all {len(views)} given answer")


def _is_of_no_use(view: ServerView) -> bool:
    """Return whether the server did not answer, or not as a member of a cluster does; refusing a user is an answer."""
    return not isinstance(view.error, AuthError) and (view.error is not None or not view.nodes)


def leader(health: Health, *, copy: bool = False, untrusted: bool = False) -> Check:
    """Check that there is a serving leader.

    `copy`: of a cluster in another region, which executes no clients' commands. `untrusted`: a node was not asked
    because of its certificate.
    """
    if health.leader is not None and copy:
        return Check(OK, "leader", f"{health.leader.name} leads this copy, term {health.leader.term}: it answers "
                     "what only reads, and serves once it is promoted")
    if health.leader is not None:
        return Check(OK, "leader", f"{health.leader.name} leads and serves, term {health.leader.term}")
    if health.switched_off:
        return Check(FAIL, "leader", *_all_off(health))
    if health.up < health.majority:
        answer = "answers" if health.up == 1 else "answer"
        needed = "is needed" if health.majority == 1 else "are needed"
        why = f"only {health.up} of {health.voters} nodes {answer}, {health.majority} {needed}"
        advice = "start nodes until there is a majority"
        if untrusted:
            advice = "correct the certificates that are refused: those nodes may run and serve"
        elif health.new:
            advice = "start nodes until there is a majority, or all of them if the cluster is new"
        return Check(FAIL, "leader", f"no node serves, {why}", advice)
    if health.new:
        missing = ", ".join(sorted(health.missing))
        return Check(FAIL, "leader", "no node serves: the cluster is not founded yet",
                     f"a new cluster needs all its nodes once: start {missing}" if missing else
                     "look again in some seconds, then at the logs of the nodes, which say for whom they wait")
    return Check(FAIL, "leader", "no node serves, though a majority answers",
                 "look again in some seconds, then at the network between the nodes and at their logs")


def members(health: Health) -> Check:
    """Check that all members are up, and how many can be lost."""
    missing = sorted(health.missing)
    if missing:
        spare = f"; {_spare(health)}" if health.serving else ""
        return Check(WARN if health.serving else FAIL, "members", f"{', '.join(missing)} missing{spare}",
                     f"start {'it' if len(missing) == 1 else 'them'}, or look at the network")
    if health.learners:
        return Check(WARN, "members", f"{', '.join(sorted(health.learners))} has not caught up yet", "wait for it")
    if health.voters == 1:
        return Check(OK, "members", "a single node: its disk has the only copy")
    if health.voters % 2 == 0:
        return Check(WARN, "members", f"{health.voters} nodes survive no more losses than {health.voters - 1}",
                     "add one, or remove one")
    return Check(OK, "members", f"{counted(health.voters, 'node')} up; {_spare(health)}")


def _spare(health: Health) -> str:
    return f"can lose {health.can_lose or 'no'} more"


def peers(own: Sequence[ServerView]) -> Check:
    """Check that every node reports contact with every other one."""
    blind = []
    for view in own:
        me = own_line(view)
        if me is None:
            continue
        unseen = sorted(line.name for line in view.nodes if line.name != me.name and not in_contact(line))
        if unseen:
            blind.append(f"{me.name} does not see {', '.join(unseen)}")
    if blind:
        return Check(WARN, "peers", "; ".join(sorted(blind)),
                     "are they up? if so, look at the network and at the peer addresses")
    return Check(OK, "peers", "every node that answers sees every other one")


def clocks(own: Sequence[ServerView]) -> Check:
    """Check that the clocks agree. The cluster uses their median, so one may be wrong but not two."""
    views = [_clocks(view) for view in own]
    ahead = max(views, key=len, default={})
    if len(ahead) < 2:
        return Check(SKIP, "clocks", "there are no two nodes in contact whose clocks could be compared")
    first, last = max(ahead, key=ahead.__getitem__), min(ahead, key=ahead.__getitem__)
    apart_ms = ahead[first] - ahead[last]
    if apart_ms < CLOCKS_APART_MS:
        return Check(OK, "clocks", f"no two are further apart than {max(apart_ms, CLOCKS_BLUR_MS) / 1000:.1f} s")
    return Check(WARN, "clocks", f"{first} is {apart_ms / 1000:.1f} s ahead of {last}", "let NTP set the clocks")


def _clocks(view: ServerView) -> dict[str, int]:
    """Return how far each clock is ahead of the clock of the node asked, in milliseconds, by node."""
    return {line.name: line.ahead_ms for line in view.nodes if line.ahead_ms is not None and in_contact(line)}


def versions(health: Health) -> Check:
    """Check that all nodes run the same version."""
    found: dict[str, list[str]] = {}
    for node in health.nodes:
        if node.version is not None:
            found.setdefault(node.version, []).append(node.name)
    if len(found) > 1:
        told = "; ".join(f"{', '.join(names)} run {version}" for version, names in sorted(found.items()))
        return Check(WARN, "versions", told, "finish the upgrade")
    return Check(OK, "versions", f"all run {next(iter(found), '?')}")


def switched_off(health: Health) -> Check:
    """Check that no node was left switched offline."""
    off = [node.name for node in health.nodes if node.online is False]
    if off and not health.switched_off:
        return Check(WARN, "online", f"{', '.join(off)} switched offline", f"pqctl node online {off[0]}")
    if off:
        return Check(FAIL, "online", *_all_off(health))
    return Check(OK, "online", "no node is switched offline")


def _all_off(health: Health) -> tuple[str, str]:
    """Return what is switched off while no node is online, and the command that ends it."""
    names = [node.name for node in health.nodes if node.online is False]
    each = "; ".join(f"pqctl node online {name}" for name in names)
    if health.service_off:
        return "the whole service is switched offline", "pqctl cluster online"
    if health.service_off is None:
        return "the whole service or each node is switched offline", f"pqctl cluster online; {each}"
    return f"{', '.join(names)} switched offline, so no node may serve", each
