"""Comparison of versions of Python: histories of simulated clusters, and the state of a cluster whose nodes differ."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import sockpq

from devcluster.cluster import LocalCluster
from tests.waiting import until

ROOT = Path(__file__).parents[2]
SEEDS = 50
NODES, JOBS, QUEUES = 3, 300, 7
LEASES_S = (0.25, 0.001, 600)
CALL_S = 60.0
DIGESTS = f"""
from tests.sim import campaign
for seed, digest in enumerate(campaign.digests(range({SEEDS}))):
    print(seed, digest)
"""


def environment() -> dict[str, str]:
    """Each version keeps its bytecode to itself."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def digests(python: Path) -> list[str]:
    """A line for each seed: its number, and the digest of all messages, entries, answers and states of its run."""
    done = subprocess.run(
        [python, "-c", DIGESTS], cwd=ROOT, capture_output=True, text=True, check=True, env=environment())
    return done.stdout.splitlines()


def differing(found: Mapping[str, list[str]]) -> list[str]:
    """The seeds, with their versions, whose digests differ from the first version's."""
    first, *others = found
    return [
        f"seed {line.split()[0]}: {first} and {other} differ"
        for other in others for line, theirs in zip(found[first], found[other], strict=True) if line != theirs
    ]


def one_cluster(pythons: Mapping[str, Path]) -> int:
    """Run a cluster whose nodes have these versions in turn, each of which leads once; returns the entries compared.

    Raises AssertionError if their states stay different; a node that finds that out by itself ends, too.
    """
    versions = [list(pythons)[number % len(pythons)] for number in range(max(NODES, len(pythons)))]
    with LocalCluster(len(versions)) as cluster, sockpq.Client(cluster.servers, timeout=CALL_S) as client:
        for name, version in zip(cluster.names, versions, strict=True):
            assert cluster.terminate(name) == 0
            cluster.run_by(name, str(pythons[version]))
            cluster.restart(name)
        for leader in cluster.names:
            until(lambda leader=leader: _leads(cluster, leader))
            _work(client)
            until(lambda: len({_hash(cluster, name) for name in cluster.names}) == 1)
        assert all(cluster.running(name) for name in cluster.names)
        return int(_hash(cluster, cluster.names[0])[0])


def _leads(cluster: LocalCluster, name: str) -> bool:
    """Return whether it leads; if not, ask for it."""
    leader = cluster.wait_for_leader()
    if leader != name:
        cluster.say(leader, f"CLUSTER TRANSFER {name}", CALL_S)
    return leader == name


def _work(client: sockpq.Client) -> None:
    """Jobs that wait, run, end and come back, with floats and other letters in them."""
    for number in range(JOBS):
        client.put(f"queue_{number % QUEUES}", f"{number / 7!r} \u00fc".encode(), priority=number % 5 - 2)
        if number % 3 == 0:
            job = client.get(f"queue_{number % QUEUES}", expire=LEASES_S[number % len(LEASES_S)])
            if job is not None and number % 2:
                job.done()


def _hash(cluster: LocalCluster, name: str) -> tuple[str, ...]:
    """The last entry that a node has executed, and the hash of all that was executed."""
    return tuple((cluster.say(name, "CLUSTER HASH", CALL_S) or "").split()[2:])
