"""The program sockpq-sqs before a real node: the first steps of its page, users, and a signal to stop."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import botocore.exceptions
import pytest
from sockpq import Client
from sockpq.testing import Server

from tests.packaging.blocks import blocks
from tests.sqs.door.doors import SECRET, send, users_file
from tests.sqs.door.programs import PATIENCE_S, Program
from tests.waiting import until

(SHOP,) = [block.text for block in blocks("docs/SQS.md") if block.first == "# shop.py"]


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(process: Server) -> Server:
    process.empty()
    return process


def test_a_program_for_amazon_needs_only_a_variable(server: Server, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    program = Program(server.address)
    try:
        done = subprocess.run(
            [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env={**os.environ, "AWS_ENDPOINT_URL_SQS": program.url, "AWS_ACCESS_KEY_ID": "x",
                 "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"})
        assert (done.stdout, done.stderr) == ("working on 17\n", "")
        with Client(server.address) as client:
            client.put("orders", "18")              # of a program that does without SQS
        sqs = program.sqs("x", "x")
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        assert url == f"{program.url}/000000000000/orders"
        assert sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"][0]["Body"] == "18"
        until(lambda: send(f"{program.url}/readyz", "GET", b"", {})[0] == 200)
    finally:
        assert program.end() == 0
    assert "Traceback" not in program.log


def test_users_sign(server: Server, tmp_path: Path) -> None:
    program = Program(server.address, "--users", str(users_file(tmp_path)), SOCKPQ_SQS_USERS_IN_CLUSTER="false")
    try:
        shop = program.sqs("shop", SECRET)
        with pytest.raises(shop.exceptions.QueueDoesNotExist):
            shop.get_queue_url(QueueName="none")
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            program.sqs("shop", "not-the-secret-0123456789").list_queues()
        assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
    finally:
        assert program.end() == 0
    assert SECRET not in program.log


def test_the_service_manager_is_notified(server: Server, tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(PATIENCE_S)
        program = Program(server.address, NOTIFY_SOCKET=address)
        try:
            assert manager.recv(100) == b"READY=1"
        finally:
            assert program.end() == 0
        assert manager.recv(100) == b"STOPPING=1"


def test_several_share_a_port(server: Server) -> None:
    first = Program(server.address, SOCKPQ_SQS_HTTP_REUSE_PORT="true")
    try:
        second = Program(server.address, SOCKPQ_SQS_HTTP_REUSE_PORT="true", listen=first.url.removeprefix("http://"))
        assert second.end() == 0
        assert send(f"{first.url}/healthz", "GET", b"", {})[0] == 200
        alone = [sys.executable, "-m", "sockpq_sqs.main", "--listen", first.url.removeprefix("http://")]
        done = subprocess.run(alone, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        words = "Address already in use; http.listen or --listen names another address\n"
        assert (done.returncode, done.stderr.endswith(words)) == (1, True), done.stderr
    finally:
        assert first.end() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "0.0.0.0:0"], "Error: http.listen: 0.0.0.0:0 can be reached from other machines"),
        (["--config", "/nonexistent"], "Error: /nonexistent: No such file or directory"),
        (["--users", "/nonexistent"], "Error: /nonexistent: No such file or directory"),
    ],
)
def test_settings_that_are_not_good_end_it(arguments: list[str], message: str) -> None:
    done = subprocess.run([sys.executable, "-m", "sockpq_sqs.main", *arguments], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert (done.returncode, message in done.stderr) == (64, True), done.stderr
    assert "Traceback" not in done.stderr


def test_settings_can_be_checked(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f'[users]\nfile = "{users_file(tmp_path)}"\n')
    command = [sys.executable, "-m", "sockpq_sqs.main", "--config", str(path), "--check-config"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "the settings are good\n")
