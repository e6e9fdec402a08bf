"""Says in one sentence whether all is well: a colour and a word, and why."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from sockpqd.cluster import Figures, NodeStatus
from sockpqd.gateway.dashboard.markup import Markup, tag
from sockpqd.gateway.dashboard.pages.parts.nodes import who_may_be_lost
from sockpqd.gateway.dashboard.pages.parts.trouble import Concern
from sockpqd.gateway.dashboard.pages.parts.view import View, counted


class Verdict(Struct, frozen=True):
    """A class of style.css (good, warn or bad), the word that goes with it, and the sentence."""

    colour: str
    word: str
    sentence: str


def verdict(view: View, nodes: list[NodeStatus], figures: Figures, found: list[Concern]) -> Verdict:
    """Return the verdict. A problem that stops everything comes first, then those that need attention."""
    leading = any(node.role == "LEADER" for node in nodes)
    lost = who_may_be_lost(nodes)
    if not view.cluster.machine.online:
        return Verdict("bad", "offline", "The service is switched offline: no client is served.")
    if not leading:
        return Verdict("bad", "not serving", lost)
    if figures.full:
        return Verdict("bad", "full", "No jobs are taken: memory or disks are full. Jobs are handed out and done.")
    if not found:
        return Verdict("good", "all is well", f"Jobs are taken and handed out. {lost}")
    words = Counter(concern.word for concern in found)
    listed = ", ".join(word if count == 1 else f"{word} ({count})" for word, count in words.items())
    severe = any(concern.severe for concern in found)
    return Verdict("bad" if any(node.role == "DOWN" for node in nodes) else "warn", "trouble" if severe else "look",
                   f"Jobs are taken and handed out; {counted(len(found), 'thing')} to look at: {listed}. {lost}")


def shown(verdict: Verdict) -> Markup:
    """Return the verdict as a part of the page."""
    return tag("section", tag("span", verdict.word, class_="word"), tag("span", verdict.sentence),
               class_=f"well {verdict.colour}", role="status")
