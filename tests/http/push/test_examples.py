"""The example receivers accept what is signed, and nothing else; the page's first steps work as they stand."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from sockpq import Client
from sockpq_http.push.configuration import PushSection, Target
from sockpq_http.push.figures import TargetFigures, text_of
from sockpq_http.push.signing import signature_headers

from tests.http.push.programs import END_S, ROOT, SECRET, example_receiver, pusher
from tests.http.push.test_delivery import free_port
from tests.packaging.blocks import blocks

PAGE = "docs/PUSH.md"
KEY = b64decode(SECRET.removeprefix("whsec_"))


@pytest.mark.parametrize("name", ["receiver.py", "receiver.mjs"])
def test_an_example_verifies_what_push_sends(name: str, address: str, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(SECRET)
    secrets.chmod(0o600)
    with Client(address) as client, example_receiver(name) as (receiver, port):
        text = (
            f'[targets.a]\nqueues = ["hooks"]\nurl = "http://127.0.0.1:{port}/"\nallow = ["127.0.0.1"]\n'
            f'secret_file = "{secrets}"\n'
        )
        with pusher(tmp_path / "push.toml", text, address):
            number = client.put("hooks", "grün", number=True).number
            assert receiver.stdout
            assert receiver.stdout.readline() == f"job job_{number} of hooks grün\n"

        def status(**changes: str) -> int:
            headers = signature_headers((KEY,), "m1", int(time.time()), b"body") | changes
            try:
                with urlopen(Request(f"http://127.0.0.1:{port}/", b"body", headers), timeout=END_S) as found:
                    return int(found.status)
            except HTTPError as error:
                error.close()
                return error.code

        good = signature_headers((KEY,), "m1", int(time.time()), b"body")["webhook-signature"]
        old = signature_headers((KEY,), "m1", int(time.time()) - 600, b"body")
        assert status() == 200
        assert status(**{"webhook-signature": f"v1,AAAA v2,x {good}"}) == 200
        assert status(**{"webhook-signature": "v1,AAAA"}) == 401
        assert status(**{"webhook-signature": ""}) == 401
        assert status(**{"webhook-id": "m2"}) == 401
        assert status(**{"webhook-timestamp": "now"}) == 401
        assert status(**old) == 401
        receiver.terminate()
        assert "m2" not in receiver.stdout.read()


def test_the_first_steps_of_the_page_work(address: str, tmp_path: Path) -> None:
    config, steps = (block.text for block in blocks(PAGE) if block.language in ("toml", "bash"))
    port = str(free_port())
    (tmp_path / "push.toml").write_text(config.replace("8000", port))
    steps = steps.replace("8000", port).replace("integrations/", f"{ROOT}/integrations/")
    environment = {
        **os.environ, "SOCKPQ_SERVERS": address, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    with subprocess.Popen(
        ["bash", "-euc", steps + "wait"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as shell:
        assert shell.stdout
        seen: list[str] = []
        try:
            for line in shell.stdout:
                seen.append(line)
                if re.fullmatch(r'job (job|try)_\d+ of orders {"order": 17}\n', line):
                    break
            else:
                raise AssertionError("".join(seen))
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(END_S)


def test_the_page_has_all_keys_with_their_defaults() -> None:
    page = (ROOT / PAGE).read_text()
    for section in (Target, PushSection):
        defaults = dict(zip(section.__struct_fields__[-len(section.__struct_defaults__):], section.__struct_defaults__,
                            strict=True))
        for key in section.__struct_fields__:
            row = re.search(rf"^\| `{key}` \| (.*?) \|", page, re.MULTILINE)
            assert row, key
            value = defaults.get(key)
            if isinstance(value, bool):
                assert row[1] == str(value).lower(), key
            elif isinstance(value, int | float):
                assert row[1] == f"{value:g}", key
            elif isinstance(value, str):
                assert row[1] == f"`{value}`", key


def test_the_page_has_all_metrics() -> None:
    one = TargetFigures("a")
    one.count("done", "http_200")
    text = text_of([one], 0, 0).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE") and "_created" not in line}
    page = (ROOT / PAGE).read_text()
    assert names == set(re.findall(r"^\| `(sockpq_push_\w+)` \|", page, re.MULTILINE))
