"""The option --all: runs a command for each cluster of the map, one after another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sockpq import ClusterMap, MappedCluster

from sockpqd.pqctl.connect import ASK_S, find
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure

Command = Callable[[Call], int]
Sum = Callable[[Sequence[Mapping[str, Any]]], tuple[str, Mapping[str, object]]]     # of what clusters answered


class ClusterCall(Call):
    """The command for one of the clusters.

    `found`: its result, for JSON or for a sum; None if it had none.
    """

    def __init__(self, call: Call, name: str, cluster: MappedCluster) -> None:
        super().__init__(call.options._replace(servers=",".join(cluster.servers)), call.as_json, call.timeout)
        self.name = name
        self.found: Mapping[str, Any] | None = None

    def answer(self, sentence: str, told: Mapping[str, object]) -> None:
        """Print the sentence at once; results for programs are kept until all clusters have answered."""
        self.found = told
        if not self.as_json:
            super().print(sentence)

    def print(self, text: str) -> None:
        """Print the text at once; JSON is kept until all clusters have answered."""
        if self.as_json:
            self.found = json.loads(text)
        else:
            super().print(text)

    def fail(self, failure: Failure) -> int:
        """Report the failure with the name of the cluster."""
        return super().fail(Failure(failure.code, f"{self.name}: {failure}"))


def run(call: Call, command: Command, total: Sum | None = None) -> int:
    """Run the command for each cluster of the map, home first; returns the greatest of their exit codes.

    A cluster that does not answer is reported, and the command continues with the others. `total`: combines the results
    of all clusters that answered. Raises Failure if there is no map.
    """
    known = _map(call)
    codes, found = [], {}
    for number, (name, cluster) in enumerate(known.clusters.items()):
        one = ClusterCall(call, name, cluster)
        if not call.as_json:
            home = " (home)" if name == known.home else ""
            call.print(("\n" if number else "") + f"cluster {name}{home}")
        codes.append(_run(one, command, cluster))
        found[name] = one.found
    answered = [one for one in found.values() if one is not None and "error" not in one]
    sentence, told = ("", {}) if total is None else total(answered)
    if call.as_json:
        call.answer("", {"version": known.version, "clusters": found, **told})
    elif sentence:
        call.print(f"\n{sentence}")
    return max(codes, default=DONE)


def _map(call: Call) -> ClusterMap:
    """Return the map from the leader or, without one, from a server that answers."""
    servers = find(call, several=True)
    with call.access.client(servers.addresses, call.timeout) as client:
        known = client.cluster_map(servers.addresses[0])
    if not known.clusters:
        raise Failure(REFUSED, "there is no map of clusters, so leave out --all; `pqctl map init NAME` makes a map")
    return known


def _run(call: ClusterCall, command: Command, cluster: MappedCluster) -> int:
    views = call.access.survey(cluster.servers, min(ASK_S, call.timeout))
    foreign = sorted(view.server for view in views
                     if view.cluster is not None and view.cluster != cluster.id)
    if foreign:
        belong = "belongs" if len(foreign) == 1 else "belong"
        return call.fail(Failure(REFUSED, f"{', '.join(foreign)} {belong} to another cluster than the map says: "
                                          f"`pqctl map add {call.name} SERVERS` corrects it"))
    return call.execute(command)
