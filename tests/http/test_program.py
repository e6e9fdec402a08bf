"""The program: its commands, its options, and the end that a signal begins."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import click
import httpx
from click.testing import CliRunner
from sockpq.testing import Server
from sockpq_http.main import COMMANDS, main
from sockpq_http.server.command import serve

from tests.waiting import PATIENCE_S, until

PAGE = Path(__file__).parents[2] / "docs" / "HTTP.md"
PROGRAM = Path(sys.executable).parent / "sockpq-http"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=PATIENCE_S, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_it_serves_until_a_signal(http_node: Server) -> None:
    port = free_port()
    line = f"{PROGRAM} serve --listen 127.0.0.1:{port} --servers {http_node.address} --drain 0"
    with subprocess.Popen(
        ["bash", "-c", f"ulimit -n 200; exec {line}"], stderr=subprocess.PIPE, text=True
    ) as program:
        until(lambda: answers(f"http://127.0.0.1:{port}"), "it is ready")
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE_S) == 0
        assert program.stderr
        lines = program.stderr.read().splitlines()
    assert lines == [
        "WARNING 100 connections at most, as this process may open 200 files only",
        f"INFO listening on 127.0.0.1:{port}", "INFO the cluster answers", "INFO stopping: not ready from now on",
    ]


def test_it_says_that_the_cluster_does_not_answer_and_ends_at_once_at_a_second_signal() -> None:
    port = free_port()
    with socket.socket() as nobody, ExitStack() as stack:
        nobody.bind(("127.0.0.1", 0))           # and does not listen; nor does anybody else there
        server = f"127.0.0.1:{nobody.getsockname()[1]}"
        line = [PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", "--servers", server, "--drain", "600"]
        program = stack.enter_context(subprocess.Popen(line, stderr=subprocess.PIPE, text=True))
        stack.callback(program.kill)            # it would not end by itself when something is wrong
        assert program.stderr
        told = [program.stderr.readline() for _ in range(2)]
        assert sorted(told)[0] == f"INFO listening on 127.0.0.1:{port}\n"
        warning = sorted(told)[1]
        assert warning.startswith("WARNING the cluster does not answer: ")
        assert "nobody listens there" in warning
        assert warning.endswith("; requests get 503 until it does\n")
        program.send_signal(signal.SIGTERM)
        assert program.stderr.readline() == "INFO stopping: not ready from now on\n"
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE_S) == 0
        assert program.stderr.read() == ""


def test_it_warns_when_other_machines_reach_a_cluster_without_users(http_node: Server) -> None:
    line = [PROGRAM, "serve", "--listen", f"0.0.0.0:{free_port()}", "--servers", http_node.address]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stderr
            warning = next(line for line in program.stderr if line.startswith("WARNING"))
        finally:
            program.kill()
    assert warning.startswith("WARNING the cluster has no users: anybody who reaches this program may do everything")


def test_a_port_that_is_taken_is_said_in_one_line(http_node: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [PROGRAM, "serve", "--listen", address, "--servers", http_node.address], capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )
    assert done.returncode == 1
    assert f"Error: cannot listen on {address}: Address already in use; --listen names another address\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_has_every_option_with_its_default() -> None:
    rows = {
        name: cells[1].strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `--")
        for cells in [line.strip("| ").split(" | ")] for name in re.findall(r"--[a-z-]+", cells[0])
    }
    options = {one.opts[0]: one.default for one in serve.params if isinstance(one, click.Option)}
    assert rows.keys() == options.keys()
    for name, default in options.items():
        if isinstance(default, int | float | str):
            assert rows[name] == (f"{default:g}" if isinstance(default, float) else str(default)), name


def test_commands_and_options_are_explained() -> None:
    for command in COMMANDS:
        shown = CliRunner().invoke(main, [command, "--help"])
        assert (shown.exit_code, "Usage" in shown.output) == (0, True), command
    for line in (["nothing"], ["serve", "--listen", "x"], ["serve", "--listen", "8080"],
                 ["serve", "--tls-cert", __file__]):
        assert CliRunner().invoke(main, line).exit_code == 2, line
