"""The documents for newcomers: their commands are run, their ports are those of `sockpqd --dev`. See test_blocks.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sockpq
from sockpq import Client

from devcluster.cluster import LocalCluster
from devcluster.ports import free_ports
from sockpqd.gateway.dev.folder import CLIENT, HTTP, PEER, PORTS_STEP

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/TUTORIAL.md", "docs/HOWTO.md", "docs/CONCEPTS.md", "docs/CELERY.md", "docs/index.md")
BIN = Path(sys.executable).parent
PATIENCE_S = 200
NODE_WITH_TLS = """
node = {{name = "n1", data_dir = "{folder}/data"}}
listen = {{client = "127.0.0.1:{port}", peer = "127.0.0.1:{peer}"}}
cluster.members = [{{name = "n1", client = "127.0.0.1:{port}", peer = "127.0.0.1:{peer}"}}]
tls = {{cert = "{folder}/n1.crt", key = "{folder}/n1.key", ca = "{folder}/ca.crt"}}
auth.users_file = "{folder}/users.toml"
"""


def blocks(document: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def shell(text: str) -> list[str]:
    """The commands of indented blocks."""
    return [line.strip() for line in text.splitlines() if re.match(r"    (make|\.venv/bin/|pqctl|sockpqd)\b", line)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        yield running


def test_what_the_tutorial_types_is_accepted(cluster: LocalCluster) -> None:
    (typed,) = blocks("docs/TUTORIAL.md", "")
    with Client(cluster.servers) as client:
        for queue in ("letters",):
            while (job := client.get(queue)) is not None:
                client.done(job)
    typed = re.sub("DONE 1$", "TOTAL letters", typed, flags=re.MULTILINE)       # ids go on from test to test
    done = subprocess.run(
        [BIN / "pqctl", "shell"], input=typed, env={**os.environ, "SOCKPQ_SERVERS":
        ",".join(cluster.servers)}, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )
    assert re.fullmatch(r"200 OK\n200 OK letters \d+ 5 5\nhello\n?200 OK 1 0 0 1\n", done.stdout.replace("\r", ""))


# Each command that the documents tell newcomers to type, and the test that runs it, with what is to be found in it.
RUN_BY = {
    "make demo": ("tests/bench/test_demo.py", "bench.demo"),
    "make play": ("tests/gateway/test_dev_cluster.py", "bench.play"),
    "make docs": ("tests/packaging/test_documents.py", '"mkdocs", "build"'),
    "make test-fast": ("tests/test_lanes.py", "fast"),
    "make test": ("tests/test_lanes.py", "all"),
    "make dist": ("tests/packaging/test_dist.py", "build"),
    "make dev": ("Makefile", "dev:"),                       # nothing else would run
    "make install": ("Makefile", "install:"),
    ".venv/bin/python -m pytest tests/core/store/test_leases.py": ("tests/core/store/test_leases.py", "def test_"),
    ".venv/bin/python -m pytest tests/gateway/test_transcripts.py -k puts": (
        "tests/gateway/test_transcripts.py", "def test_"),
    ".venv/bin/sockpqd --dev": ("tests/gateway/test_daemon.py", "--dev"),
    ".venv/bin/sockpqd --dev --nodes 3": ("tests/gateway/test_dev_cluster.py", '"--nodes", "3"'),
    ".venv/bin/sockpqd --check-config n1.toml": ("tests/packaging/test_documents.py", '"--check-config"'),
    ".venv/bin/sockpqd --config n1.toml": ("devcluster/node.py", "--config"),
    ".venv/bin/pqctl shell": ("tests/packaging/test_documents.py", '"shell"'),
    ".venv/bin/pqctl --servers 127.0.0.1:11361,127.0.0.1:11461,127.0.0.1:11561 cluster status": (
        "tests/packaging/test_documents.py", '"cluster", "status"'),
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_is_run_by_a_test(document: str) -> None:
    for line in shell((ROOT / document).read_text()):
        command = line.partition("  #")[0].strip()
        file, text = RUN_BY[command]
        assert text in (ROOT / file).read_text(), command


def test_the_configuration_of_the_readme_is_good(tmp_path: Path) -> None:
    (block,) = re.findall(r"^    \[node\]\n(?:    .*\n)+", (ROOT / "README.md").read_text(), re.MULTILINE)
    (tmp_path / "n1.toml").write_text(block.replace("/var/lib/sockpqd", str(tmp_path / "data")))
    done = subprocess.run([BIN / "sockpqd", "--check-config", tmp_path / "n1.toml"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    assert "good; node n1 of 3" in done.stdout


def test_the_recipe_for_certificates_and_users_makes_what_a_node_takes(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    (recipe,) = [text for text in blocks("docs/OPERATIONS.md", "bash") if "openssl" in text]
    recipe = re.sub(r"10\.0\.0\.\d", "127.0.0.1", recipe)
    subprocess.run(["bash", "-eu"], input=recipe, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S,
                   check=True)
    port, peer = free_ports(2)
    (tmp_path / "n1.toml").write_text(NODE_WITH_TLS.format(folder=tmp_path, port=port, peer=peer))
    subprocess.run([BIN / "sockpqd", "--check-config", "n1.toml"], cwd=tmp_path, timeout=PATIENCE_S, check=True)
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(
        [BIN / "sockpqd", "--config", "n1.toml"], cwd=tmp_path, stdout=log, stderr=log
    ) as node:
        try:
            with Client(f"127.0.0.1:{port}", tls=str(tmp_path / "ca.crt"), user="operator",
                        secret_file=tmp_path / "operator.secret", timeout=PATIENCE_S) as client:
                client.put("mail", b"x")        # tried until the node serves
                assert [user.name for user in client.users()] == ["operator"]
        finally:
            node.terminate()


def test_the_status_of_the_readme_is_shown(cluster: LocalCluster) -> None:
    done = subprocess.run([BIN / "pqctl", "--servers", ",".join(cluster.servers), "cluster", "status"],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert all(name in done.stdout for name in cluster.names)


def test_what_the_readme_types_is_answered_so() -> None:
    block = re.search(r"^    > PUT(?:.*\n)+?    < 221 .*\n", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert block is not None
    lines = [line.strip() for line in block[0].splitlines()]
    typed = "".join(f"{line[2:]}\n" for line in lines if line.startswith("> "))
    with LocalCluster(nodes=1) as alone:
        done = subprocess.run([BIN / "pqctl", "--servers", ",".join(alone.servers), "shell"], input=typed,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    answers = [line[2:] for line in lines if line.startswith("< ")]
    assert re.split(r"[\r\n]+", done.stdout.replace("hello200", "hello\n200").strip()) == answers


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_has_the_targets(document: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", "\n".join(shell((ROOT / document).read_text()))))
    assert named <= targets


@pytest.mark.parametrize("document", [*DOCUMENTS, "client/README.md", "examples/clients/README.md"])
def test_ports_are_those_of_a_cluster_to_play_with(document: str) -> None:
    ports = {first + PORTS_STEP * number for first in (CLIENT, PEER, HTTP) for number in range(3)}
    found = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", (ROOT / document).read_text())}
    assert found <= ports


@pytest.mark.parametrize("document", [*DOCUMENTS, "docs/PROTOCOL.md"])
def test_nobody_needs_nc(document: str) -> None:
    assert not re.search(r"(^    |\| )nc ", (ROOT / document).read_text(), re.MULTILINE)


def test_no_document_puts_jobs_into_a_queue_of_tasks_of_another() -> None:
    # A worker buries jobs that call no task, so a reader who follows two of the documents would see it fail.
    names = ("README.md", "docs/TUTORIAL.md", "docs/HOWTO.md", "client/README.md", "docs/WORKERS.md",
             "docs/FLOWS.md", "docs/RABBITMQ.md", "docs/FAIRNESS.md", "docs/SCALING.md", "examples/clients/README.md")
    texts = [(ROOT / name).read_text() for name in names]
    texts += [path.read_text() for path in sorted((ROOT / "client/examples").glob("*.py"))]
    texts += [(ROOT / "pqctl" / name).read_text() for name in ("commands/shell.py", "shell/run.py")]
    tasks = {queue for text in texts for queue in re.findall(r'@app\.task\("([\w.]+)"', text)}
    put = re.compile(r'(?:(?:client|cluster)\.put(?:_many)?\("|> PUT |^PUT |PUT (?=\w+ 0 "hello")|\$S put |job put )'
                     r"([\w.]+)", re.MULTILINE)
    puts = {queue for text in texts for queue in put.findall(text)}
    assert tasks >= {"mail", "videos"}
    assert puts >= {"letters", "notes", "orders", "post", "lines", "mailing"}
    assert not tasks & puts


def test_the_reference_has_every_name_of_the_library() -> None:
    page = (ROOT / "docs/API.md").read_text()
    assert "::: sockpq.model\n" in page
    assert "::: sockpq.errors\n" in page
    elsewhere = {*vars(sockpq.model), *vars(sockpq.errors), "EventType"}      # the last one is a type of words
    assert [name for name in sockpq.__all__ if name not in elsewhere and f"::: sockpq.{name}\n" not in page] == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed: make docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"], cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
    assert "https://fonts." not in (tmp_path / "site" / "index.html").read_text()
    assert "Put, take, finish" in (tmp_path / "site" / "CLIENT.html").read_text()
    assert "await" in (tmp_path / "site" / "API_AIO.html").read_text()
    for document in (ROOT / "docs").glob("*.md"):
        source = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
        tables = len(re.findall(r"^ *\|( *:?-+:? *\|)+$", source, re.MULTILINE))
        page = (tmp_path / "site" / document.name).with_suffix(".html")
        assert page.read_text().count("<table>") == tables, f"a table of {document.name} did not come out"
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"<p>\|", text), f"a broken table in {page.name}"
        assert "](" not in re.sub(r"<(pre|code)\b.*?</\1>", "", text, flags=re.DOTALL), f"a broken link in {page.name}"
