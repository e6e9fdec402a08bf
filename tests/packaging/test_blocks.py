"""Every block of code in every document is run, or checked as far as that goes; the others are listed here."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from sockpq.configuration import configuration
from sockpq.testing import Server
from sockpq.worker.program import metrics
from sockpq.worker.program.options import KEYS, parse, read_config
from sockpq_http.main import main as http_program
from sockpq_outbox.program.main import main as outbox_program

from sockpqd.gateway.config import read
from sockpqd.pqctl.program import pqctl as pqctl_program
from tests.packaging.blocks import ROOT, Block, blocks, commands, documents

BIN = Path(sys.executable).parent
PATIENCE_S = 200
ALL = [block for document in documents() for block in blocks(document)]

# tests/worker/program/test_page.py and tests/worker/flows/test_page.py run their programs, each as one.
PAGES_ON_WORKERS = ("docs/WORKERS.md", "docs/FLOWS.md")
# tests/django/test_page.py runs their programs, in a project.
PAGES_ON_DJANGO = ("docs/DJANGO.md", "integrations/django/README.md")
# Blocks that other tests run or that nothing runs: by document and beginning.
ELSEWHERE = {
    ("docs/PROTOCOL.md", ""): "tests/gateway/test_documentation.py",
    ("docs/HTTP.md", "$ curl"): "tests/http/test_page.py",
    ("client/README.md", ">>> "): "tests/client/test_readme.py",
    ("client/README.md", "from sockpq import Client"): "tests/client/test_readme.py",
    ("client/README.md", "client = Client(servers, tls="): "tests/client/test_tls.py",
    ("client/README.md", "# conftest.py"): "tests/client/test_testing.py",
    ("README.md", "> PUT"): "tests/packaging/test_documents.py",
    ("docs/TUTORIAL.md", "PUT letters"): "tests/packaging/test_documents.py",
    ("docs/CONFIGURATION.md", "[node]"): "tests/gateway/config/test_config.py",
    ("docs/CONFIGURATION.md", "[tls]"): "tests/gateway/config/test_config.py",
    ("docs/CONFIGURATION.md", "[users.op]"): "tests/gateway/auth/test_users_file.py",
    ("docs/OPERATIONS.md", "umask 077"): "tests/packaging/test_documents.py",
    ("docs/SQS.md", "# shop.py"): "tests/sqs/door/test_program.py",
    ("docs/SQS.md", "# celeryconfig.py"): "tests/sqs/door/test_documentation.py",
    ("docs/SQS.md", "# /etc/sockpq-sqs.users.toml"): "tests/sqs/door/test_documentation.py",
    ("docs/SQS.md", "[sqs.accounts]"): "tests/sqs/door/test_documentation.py",
    ("docs/WORKERS.md", "pqworker_instances:"): "tests/worker/test_documentation.py",
    ("docs/OUTBOX.md", "# shop.py"): "tests/outbox/test_page.py",
    ("docs/OUTBOX.md", "# worker.py"): "tests/outbox/test_page.py",
    ("integrations/outbox/README.md", "import psycopg"): "tests/outbox/test_page.py",
    ("examples/clients/README.md", "S="): "tests/packaging/test_clients.py",
    ("docs/PUSH.md", "# push.toml"): "tests/http/push/test_examples.py",
    ("docs/PUSH.md", "echo whsec_"): "tests/http/push/test_examples.py",
    ("client/README.md", "pip install"): "tests/packaging/test_beside_other_packages.py",
}
PICTURES = {
    ("README.md", "client ──▶"), ("docs/ARCHITECTURE.md", "client ──TCP──▶"), ("docs/CONCEPTS.md", "PUT"),
    ("docs/RATE_LIMITS.md", "without     |"), ("tests/README.md", "knows "),
}
SHOWN = {       # what programs print
    ("docs/OPERATIONS.md", "$ pqctl cluster status"), ("docs/OPERATIONS.md", "the disk of node.data_dir"),
    ("docs/FLOWS.md", "0  app.resize"), ("docs/PUSH.md", "POST /hooks"),
    ("docs/LOSING_A_MAJORITY.md", "NOT SERVING"), ("docs/LOSING_A_MAJORITY.md", "serving:"),
}
# Programs of the system or of others, in these documents for those who have them.
OTHERS = (
    ". .venv", "ansible", "celery", "cd", "createdb", "curl", "django-admin", "dramatiq", "eval", "export", "git",
    "helm", "journalctl", "kubectl", "mkdir", "mv", "printf", "python3 -m venv", "sha256sum", "skopeo", "ssh",
    "ssh-keygen", "twine", "sudo -u postgres createuser", "sudo apt", "sudo mv", "sudoedit", "systemctl",
    "sudo systemctl", "sudo systemd-sysusers", "sudo python3 -m venv", "sudo useradd", "taskiq",
)
INSTALLED = "/opt/sockpqd/share/"
OWN = {"mail.toml"}         # files that the reader makes, as the page shows
READS = {"pqctl cluster status", "pqctl doctor", "pqctl queue list", "pqctl worker list"}


def listed(block: Block) -> bool:
    """Return whether it is in one of the lists above."""
    return any(block.document == document and block.first.startswith(first)
               for document, first in (*ELSEWHERE, *PICTURES, *SHOWN))


def is_python(block: Block) -> bool:
    return block.language == "python" or (block.language == "indented" and block.first.startswith("client."))


def is_shell(block: Block) -> bool:
    return block.language == "bash" or (
        block.language == "indented" and not is_python(block) and not block.first.startswith(("[", "/", "#")))


REST = [block for block in ALL if not listed(block)]
PYTHON = [block for block in REST if is_python(block) and block.document not in (*PAGES_ON_WORKERS, *PAGES_ON_DJANGO)]
SHELL = [block for block in REST if is_shell(block)]
DATA = [block for block in REST if not is_python(block) and not is_shell(block)]


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(process: Server) -> Server:
    process.empty()
    return process


def environment(server: Server, home: Path) -> dict[str, str]:
    """As of somebody who has installed the programs and has nothing else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOCKPQ", "XDG"))}
    return {**kept, "HOME": str(home), "SOCKPQ_SERVERS": server.address, "PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_a_program_runs_as_it_stands(block: Block, server: Server, tmp_path: Path) -> None:
    text = block.text.replace("127.0.0.1:11361", server.address)       # in the URL of Celery's broker
    if "client." in text and "client = " not in text and "as client" not in text:   # the page begins with it
        text = f"from sockpq import Client\nclient = Client()\n{text}"
    (tmp_path / "app.py").write_text(text)
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=environment(server, tmp_path),
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, f"{block}\n{done.stderr}"


# lines for a shell

def make(words: list[str]) -> None:
    """Check that the Makefile has the target and the variables."""
    makefile = (ROOT / "Makefile").read_text()
    for word in words[1:]:
        name, sign, _ = word.partition("=")
        pattern = rf"^{name}\s*\??=" if sign else rf"^{re.escape(word)}:"
        assert re.search(pattern, makefile, re.MULTILINE), word


def pqctl(words: list[str]) -> None:
    """Check that the command line is understood, up to where something would happen."""
    understood(pqctl_program, words)


def sockpq_http(words: list[str]) -> None:
    """Check that the command line is understood."""
    understood(http_program, words)


def pqoutbox(words: list[str]) -> None:
    """Check that the command line is understood."""
    understood(outbox_program, words)


def understood(program: click.Command, words: list[str]) -> None:
    """Parse a command line of a program with commands."""
    context = program.make_context(words[0], words[1:], resilient_parsing=False)
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)


def has_options(name: str) -> Callable[[list[str]], None]:
    """The options stand in the help of the program."""
    def check(words: list[str]) -> None:
        told = subprocess.run([BIN / name, "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        for word in words[1:]:
            assert not word.startswith("--") or word in told.stdout, word

    return check


def module(words: list[str]) -> None:
    """Check that the module is there, and its package has the options."""
    name = words[2]
    if words[1] == "manage.py":                 # tests/django/test_page.py and test_worker.py
        assert name in ("makemigrations", "migrate", "shell", "sockpq_relay", "sockpq_worker", "startapp"), name
        if "--" in words:
            pqworker(["pqworker", "app:app", *words[words.index("--") + 1 :]])
        return
    if name in ("pytest", "tests.lanes"):       # whose arguments go to pytest
        for word in words[3:]:
            assert not word.startswith("tests/") or (ROOT / word.partition("::")[0]).exists(), word
        return
    assert importlib.util.find_spec(name), name
    package = ROOT / name.partition(".")[0]
    text = "".join(path.read_text() for path in sorted(package.rglob("*.py")))
    for word in words[3 : words.index("--") if "--" in words else None]:
        assert not word.startswith("--") or f'"{word.partition("=")[0]}' in text, word


def pip_install(words: list[str]) -> None:
    """Check that our packages, which are on no index yet, come from a folder of wheels or the sources."""
    given = words[words.index("install") + 1 :]
    ours = [word for word in given if re.match(r"sockpq", word)]
    assert not ours or "--find-links" in given, f"{ours} is on no index"
    for word in given:
        assert not word.startswith("./") or (ROOT / re.sub(r"\[.*", "", word)).is_dir(), word


def install_files(words: list[str]) -> None:
    """Check that what is copied is there, in the sources or in what the wheel installs, and that its folder is made."""
    sources = [word for word in words if word.startswith(("deploy/", INSTALLED))]
    assert sources or words[-2] in OWN, words
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    given = {f"/opt/sockpqd/{to}": source for source, to in wheel["shared-data"].items()}
    for word in sources:
        assert (ROOT / given.get(word, word)).exists(), word
    folder = str(Path(words[-1]).parent) if not words[-1].endswith("/") else words[-1].rstrip("/")
    there = folder in ("/etc", "/etc/systemd/system")
    assert words[0] != "install" or there or "-D" in words, f"there may be no {folder}"


def playbook(words: list[str]) -> None:
    """Check that the playbook and the variables are there."""
    (book,) = [word for word in words if word.endswith(".yml")]
    assert (ROOT / "deploy/ansible" / book).is_file()
    texts = "".join(path.read_text() for path in (ROOT / "deploy/ansible").rglob("*.yml"))
    for word in words:
        name, sign, _ = word.partition("=")
        assert not sign or name in texts, name


def pqworker(words: list[str]) -> None:
    """Check that the command line is understood."""
    place = parse(words[1:]).get("metrics")
    if place is not None:
        metrics.check(place)


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "make": make, "pqctl": pqctl, "pqworker": pqworker, "python": module, "pip": pip_install,
    "sockpqd": has_options("sockpqd"), "sockpq-beanstalkd": has_options("sockpq-beanstalkd"),
    "sockpq-sqs": has_options("sockpq-sqs"), "sockpq-http": sockpq_http, "pqoutbox": pqoutbox,
    "install": install_files, "cp": install_files, "ansible-playbook": playbook,
}


def test_every_line_for_a_shell_is_one_that_works_here() -> None:
    wrong = []
    for block in SHELL:
        for line in commands(block):
            for part in re.split(r" && ", line.removesuffix("&").strip()):
                if part.startswith("python -c "):       # tests/worker/program/test_page.py
                    continue
                try:
                    check(part)
                except (AssertionError, click.ClickException, SystemExit) as error:
                    wrong.append(f"{block}: {part}: {error or type(error).__name__}")
    assert not wrong, "\n".join(wrong)


def check(line: str) -> None:
    """Check one command of a document by the options of its program."""
    if line.startswith(OTHERS) and not line.startswith("ansible-playbook"):
        return
    words = shlex.split(line)
    words = words[1:] if words[0] == "sudo" else words
    name = Path(words[0]).name
    assert name in CHECKS, f"nothing here checks {name}"
    CHECKS[name](words)


def test_what_only_looks_is_run(server: Server, tmp_path: Path) -> None:
    lines = {line for block in SHELL for line in commands(block)}
    assert lines >= READS
    for line in sorted(READS):
        patiently = [*shlex.split(line), "--timeout", "60"]     # by default `status` waits for 0.6 s
        done = subprocess.run(patiently, env=environment(server, tmp_path), capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        assert done.returncode in (0, 1), (line, done.stderr)       # doctor has something to say about a lonely node
        assert not done.stderr.startswith("Usage"), line


def test_nothing_says_that_our_packages_are_on_an_index() -> None:
    texts = {path: (ROOT / path).read_text() for path in documents()}
    texts |= {str(path): path.read_text() for path in (ROOT / "client/src").rglob("*.py")}
    for path, text in texts.items():
        assert not re.search(r"pip install '?sockpq", text), path


# files of configuration

def node_with(text: str) -> dict[str, Any]:
    """A node of a configuration that has this text as well."""
    (sample,) = [block.text for block in ALL if block.document == "README.md" and block.first == "[node]"]
    found, more = tomllib.loads(sample), tomllib.loads(text)
    for section, settings in more.items():
        found[section] = {**found.get(section, {}), **settings}
    return found


def check_data(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program that reads such a file read it."""
    document, first = block.document, block.first
    path = folder / "file.toml"
    path.write_text(block.text)
    if (document, first) in {("README.md", "[node]"), ("docs/BEANSTALKD.md", "[listen]"),
                             ("docs/OPERATIONS.md", "[limits]"), ("docs/SCALING.md", "[raft]"),
                                 ("docs/REGIONS.md", "[feed]"), ("docs/REGIONS.md", "[replica]")}:
        read(node_with(block.text), {})
    elif document == "docs/OPERATIONS.md" and first.startswith("servers ="):
        for name in os.environ:
            if name.startswith("SOCKPQ"):
                monkeypatch.delenv(name)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home_of(folder, block.text)))
        found = configuration()
        assert (len(found.servers), found.user) == (3, "ops")
    elif document == "docs/WORKERS.md" and block.language == "toml":
        assert read_config(str(path)).keys() <= KEYS.keys()
    elif block.language == "yaml":
        assert yaml.safe_load(block.text)["scrape_configs"][0]["job_name"] == "sockpqd"
    elif first == "listen beanstalkd":
        if shutil.which("haproxy"):
            subprocess.run(["haproxy", "-c", "-f", path], check=True, timeout=PATIENCE_S)
    elif first.startswith("/var/log/sockpqd/audit.log"):
        if shutil.which("logrotate"):
            subprocess.run(["logrotate", "--debug", path], check=True, timeout=PATIENCE_S)
    else:
        raise AssertionError(f"nothing here runs {block}, which begins with {first!r}")


def home_of(folder: Path, text: str) -> Path:
    """A folder of configurations with this one, and the files that it names."""
    place = folder / "config" / "sockpq"
    place.mkdir(parents=True)
    (place / "config.toml").write_text(text)
    for name in ("ca.crt", "ops.secret"):
        (place / name).touch(0o600)
    return folder / "config"


@pytest.mark.parametrize("block", DATA, ids=str)
def test_a_file_of_configuration_is_read(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_data(block, tmp_path, monkeypatch)


def test_what_is_run_elsewhere_is_there() -> None:
    for (document, first), file in ELSEWHERE.items():
        assert (ROOT / file).is_file(), file
        assert any(block.document == document and block.first.startswith(first) for block in ALL), (document, first)
    for document, first in (*PICTURES, *SHOWN):
        assert any(block.document == document and block.first.startswith(first) for block in ALL), (document, first)
