"""Dashboard and alert rules name what a real node exports, and OPERATIONS.md explains each alert."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sockpq import Client, ClusterMap, MappedCluster

from devcluster.cluster import LocalCluster
from tests.system.test_watching import get

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "sockpqd.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
OPERATIONS = (ROOT / "docs" / "OPERATIONS.md").read_text()

SCRAPED = {"job", "instance"}               # labels that Prometheus adds
WITH_TLS = {"sockpqd_certificate_expiry_seconds": {"certificate"}}     # has no series without
# Of the leader of a replica only; tests/gateway/monitoring/test_metrics.py looks at them.
OF_REPLICAS: dict[str, set[str]] = {f"sockpqd_replica_{name}": set() for name in (
    "lag_seconds", "lag_entries", "index", "entries_total", "bytes_total", "snapshot_bytes_total", "connections_total",
)} | {"sockpqd_replica_phase": {"phase"}}
WORDS = {
    "by", "without", "on", "ignoring", "and", "or", "unless", "group_left", "sum", "max", "min", "count", "rate",
    "increase", "topk", "absent", "histogram_quantile", "time", "vector", "up", "bool",
}


def dashboard_expressions() -> list[str]:
    """Each PromQL expression of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def alerts() -> list[dict[str, Any]]:
    """Each rule; the file keeps to a simple part of YAML, so that no parser is needed."""
    rules = []
    for block in ALERTS.read_text().split("      - alert: ")[1:]:
        block = re.sub(r">-\n\s+", "", block)
        block = re.sub(r"\n\s+(?=> )", " ", block)
        found = re.findall(r"^\s*(expr|for|severity|summary|section): (.+)$", block, re.MULTILINE)
        rules.append({"alert": block.splitlines()[0], **dict(found)})
    return rules


EXPRESSIONS = [*dashboard_expressions(), *(rule["expr"] for rule in alerts())]


@pytest.fixture(scope="module")
def exported() -> Iterator[dict[str, set[str]]]:
    """The labels of each name that the leader of a real cluster exports."""
    with LocalCluster(3, config={"limits": {"hot_bytes": 1 << 20}}) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_until_level()
        with Client(cluster.servers) as client:
            client.put("q", b"x")
            client.pulse_create("p")
            client.put("q", b"x", group="tenant")
            client.group_config("tenant", limit=3, rate=1, per=1, weight=2)
            own = MappedCluster(str(client.cluster_id().id), tuple(cluster.servers))
            client.set_cluster_map(ClusterMap(1, {"a": own}))
        labels: dict[str, set[str]] = {name: set(found) for name, found in (WITH_TLS | OF_REPLICAS).items()}
        for family in text_string_to_metric_families(get(cluster.http(leader), "metrics")[1]):
            for sample in family.samples:
                labels.setdefault(sample.name, set()).update(sample.labels)
        yield labels


def names(expression: str) -> set[str]:
    return set(re.findall(r"\bsockpqd_\w+", expression))


def test_there_is_something_to_check() -> None:
    assert len(dashboard_expressions()) > 15
    assert len(alerts()) >= 10


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_name_and_label_is_exported(expression: str, exported: dict[str, set[str]]) -> None:
    unknown = names(expression) - exported.keys()
    assert not unknown
    of_these = set().union(*(exported[name] for name in names(expression)), SCRAPED)
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=(?!=))\s*\"", expression))
    for listed in re.findall(r"\b(?:by|without|on|ignoring|group_left)\s*\(([^)]*)\)", expression):
        used |= {label.strip() for label in listed.split(",")}
    assert used <= of_these


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_syntax_is_sound(expression: str) -> None:
    assert balanced(expression)
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring|group_left)\s*\([^)]*\)', " ", expression)
    words = set(re.findall(r"[A-Za-z_]\w*", bare)) - names(expression)
    assert words <= WORDS
    for name in re.findall(r"\bsockpqd_\w+_(?:total|bucket)\b", expression):
        around = rf"(?:rate|increase)\({name}(?:\{{[^}}]*\}})?\[[^\]]+\]\)"
        assert re.search(around, expression), f"{name} is a counter: it needs rate() or increase()"


def balanced(expression: str) -> bool:
    """Return whether each bracket is closed by its own kind, and each quote."""
    closing, open_brackets = {")": "(", "}": "{", "]": "["}, []
    text = re.sub(r'"[^"]*"', "", expression)
    for letter in text:
        if letter in closing.values():
            open_brackets.append(letter)
        elif letter in closing and (not open_brackets or open_brackets.pop() != closing[letter]):
            return False
    return not open_brackets and '"' not in text


@pytest.mark.parametrize("wrong", ["sum(x", "sum(x]", 'x{a="b}', "x)", "rate(x[5m)"])
def test_what_is_not_balanced_is_found(wrong: str) -> None:
    assert not balanced(wrong)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_each_alert_is_explained(rule: dict[str, Any]) -> None:
    assert rule.keys() >= {"alert", "expr", "severity", "summary", "section"}
    assert rule["severity"] in ("warning", "critical")
    page, _, anchor = rule["section"].partition("#")
    assert page == "docs/OPERATIONS.md"
    assert anchor == rule["alert"].removeprefix("Sockpqd").lower()
    assert re.search(rf"^#### {anchor}$", OPERATIONS, re.MULTILINE | re.IGNORECASE)


def test_operations_tells_of_every_metric_and_of_no_other(exported: dict[str, set[str]]) -> None:
    table = OPERATIONS.partition("### Metrics")[2].partition("### Alerts")[0]
    told = set(re.findall(r"`(sockpqd_\w+)`", table))
    assert told == {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported}
    for line in table.splitlines():
        if line.startswith("| `sockpqd_"):
            _, listed, labels, *_ = line.split("|")
            for name in re.findall(r"`(\w+)`", listed):
                real = exported.get(name, set()) | exported.get(f"{name}_bucket", set())
                assert set(re.findall(r"`(\w+)`", labels)) == real, name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_promtool_takes_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", ALERTS], check=True)
