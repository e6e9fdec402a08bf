"""The Helm chart: rendered by helm, held against the schemas of Kubernetes and against the node's own configuration."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from sockpqd.gateway.config import read

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/sockpqd"
HELM = shutil.which("helm") or shutil.which("helm", path=str(ROOT / ".tools"))
VERSIONS = "1.27", "1.31", "1.36"
NOT_KUBERNETES_OWN = {"ServiceMonitor"}
PATIENCE_S = 120

pytestmark = pytest.mark.skipif(HELM is None, reason="no helm: make helm")

EVERYTHING: dict[str, Any] = {
    "nodes": 5, "usersSecret": "users", "tlsSecret": "certificates", "spread": "preferred", "pullSecrets": ["registry"],
    "storage": {"class": "fast"}, "config": {"limits": {"data_bytes_max": 1048576}, "raft": {"heartbeat_ms": 60}},
    "serviceMonitor": {"enabled": True, "userSecret": "scraper"}, "nodeSelector": {"disk": "ssd"},
    "networkPolicy": {"enabled": True, "clients": [{"podSelector": {"matchLabels": {"queue": "yes"}}}]},
    "replica": {"of": "10.1.0.1:11361", "user": "copy", "secret": "origin"},
    "tolerations": [{"key": "queue", "operator": "Exists"}], "annotations": {"team": "queues"},
}


def helm(*words: str, values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    assert HELM
    # A helm that `go install` has built takes a very old Kubernetes for granted.
    command = [HELM, *words, str(CHART), "--values", str(file), "--kube-version", "1.31.0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def rendered(values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    done = helm("template", "queue", "--namespace", "jobs", values=values, folder=folder)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def only(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [one for one in objects if one["kind"] == kind]
    return found


@pytest.mark.parametrize("values", [{}, {"nodes": 1, "spread": "none"}, EVERYTHING], ids=["plain", "one", "everything"])
def test_all_objects_are_ones_of_kubernetes(values: dict[str, Any], tmp_path: Path) -> None:
    import kubernetes_validate  # of the extra `deploy-tests`

    for one in rendered(values, tmp_path):
        if one["kind"] not in NOT_KUBERNETES_OWN:
            for version in VERSIONS:
                kubernetes_validate.validate(one, version, strict=True)
    assert helm("lint", "--strict", values=values, folder=tmp_path).returncode == 0


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["plain", "everything"])
def test_nodes_read_their_configuration(values: dict[str, Any], tmp_path: Path) -> None:
    text = only(rendered(values, tmp_path), "ConfigMap")["data"]["sockpqd.toml"]
    names = [f"queue-sockpqd-{number}" for number in range(values.get("nodes", 3))]
    for name in names:
        config = read(tomllib.loads(text), {"SOCKPQD_NODE_NAME": name})
        assert config.node.name == name
        assert [member.name for member in config.cluster.members] == names
        assert config.cluster.members[0].peer == "queue-sockpqd-0.queue-sockpqd-nodes.jobs.svc.cluster.local:11362"
    if values:
        assert config.limits.data_bytes_max == 1048576
        assert config.tls is not None
        assert (config.replica.of, config.replica.user) == ("10.1.0.1:11361", "copy")
        assert config.replica.secret_file == "/run/sockpqd/origin.secret"


def test_a_majority_stays_and_secrets_reach_the_node_alone(tmp_path: Path) -> None:
    objects = rendered(EVERYTHING, tmp_path)
    assert only(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    pod = only(objects, "StatefulSet")["spec"]["template"]["spec"]
    (first,) = pod["initContainers"]
    assert "install -m 400" in first["command"][-1]
    assert "install -m 600 /secrets/origin/secret /run/sockpqd/origin.secret" in first["command"][-1]
    assert not {"tls", "users", "origin"} & {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert pod["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert pod["securityContext"]["runAsNonRoot"]


@pytest.mark.parametrize(
    "values",
    [{"nodes": 2}, {"spread": "often"}, {"replicas": 3}, {"config": {"listen": {"insecure": True}}},
     {"replica": {"of": "h:1"}}, {"replica": {"user": "copy"}}, {"config": {"replica": {"of": "h:1"}}}],
    ids=["two", "spread", "unknown", "section", "no-secret", "no-origin", "section-replica"],
)
def test_a_wrong_value_is_refused(values: dict[str, Any], tmp_path: Path) -> None:
    assert helm("template", "queue", values=values, folder=tmp_path).returncode != 0
