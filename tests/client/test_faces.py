"""The public methods of both clients: written from the declarations, with every option by name and type."""

from __future__ import annotations

import importlib.util
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sockpq
from sockpq import aio

CLIENT = Path(__file__).parents[2] / "client"
FACES = CLIENT / "tools" / "faces.py"


def faces() -> ModuleType:
    spec = importlib.util.spec_from_file_location("faces", FACES)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["faces"] = module
    spec.loader.exec_module(module)
    return module


def public(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method) for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") or name == "__init__"
    }


def test_the_clients_are_what_the_declarations_say() -> None:
    """If this is red: `make client-faces`, and look at the difference."""
    assert subprocess.run([sys.executable, FACES, "--check"], check=False).returncode == 0


def test_a_change_of_a_declaration_is_noticed_and_reaches_both_clients(tmp_path: Path) -> None:
    package = tmp_path / "sockpq"
    shutil.copytree(CLIENT / "src" / "sockpq", package)
    declarations = package / "_protocol" / "commands" / "jobs.py"
    text = declarations.read_text()
    assert text.count("def kick(queue: str, count: int,") == 1
    declarations.write_text(text.replace("def kick(queue: str, count: int,", "def kick(queue: str, count: int = 7,"))
    stale = {path.name: text for path, text in faces().files(package) if path.read_text() != text}
    assert list(stale) == ["client.py"]
    for _, made in faces().files(package):
        if "async def kick(" in made or "    def kick(" in made:
            assert "count: int = 7" in made


@pytest.mark.parametrize("kind", [
    sockpq.Client, sockpq.Job, sockpq.Transaction, aio.Client, aio.Job, aio.Transaction,
])
def test_every_option_has_a_name_and_a_type_and_every_method_says_what_it_is_for(kind: type) -> None:
    for name, signature in public(kind).items():
        assert getattr(kind, name).__doc__ or name == "__init__", name
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL), (name, parameter)
            assert parameter.annotation is not parameter.empty, (name, parameter)


def test_what_a_job_and_a_transaction_offer_is_what_the_client_offers() -> None:
    of_client: dict[str, Any] = public(sockpq.Client)
    for kind, without in ((sockpq.Job, {"job", "retry_unknown"}), (sockpq.Transaction, {"timeout", "retry_unknown"})):
        for name, signature in public(kind).items():
            if name not in ("__init__", "json"):
                own = {one: (value.kind, value.default) for one, value in signature.parameters.items()}
                other = {one: (value.kind, value.default) for one, value in of_client[name].parameters.items()}
                assert own == {one: value for one, value in other.items() if one not in without}, (kind, name)
