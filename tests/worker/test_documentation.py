"""docs/WORKERS.md describes every option, and its programs are programs; the unit and the role belong together."""

from __future__ import annotations

import re
from pathlib import Path

from sockpq.worker import App
from sockpq.worker.program.options import KEYS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/WORKERS.md").read_text()


def test_the_page_has_every_option() -> None:
    for key in KEYS.keys() - {"app", "concurrency"}:
        assert f"`--{key}" in PAGE or f" --{key}" in PAGE, key
    assert "-c 4" in PAGE


def test_its_programs_run() -> None:
    names: dict[str, object] = {"__name__": "app"}
    for program in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(program, names)
    app = names["app"]
    assert isinstance(app, App)
    assert list(app.tasks) == ["app.send", "year", "convert", "app.nightly", "app.export"]
    assert list(app.handlers) == ["orders", "reports"]
    assert app.tasks["app.nightly"].schedule


def test_the_readmes_first_program_uses_it() -> None:
    readme = (ROOT / "README.md").read_text()
    program = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0]
    names: dict[str, object] = {"__name__": "app"}
    exec(program, names)
    assert isinstance(names["app"], App)
    assert "pqworker app:app" in program


def test_the_unit_and_the_role_have_the_same_lines_and_the_page_all_variables() -> None:
    unit = (ROOT / "deploy/systemd/pqworker@.service").read_text().splitlines()
    template = (ROOT / "deploy/ansible/roles/pqworker/templates/pqworker@.service.j2").read_text().splitlines()
    other = {line.partition("=")[0] for line in set(unit) ^ set(template) if line and not line.startswith("#")}
    assert other == {"User", "Group", "EnvironmentFile", "ExecStart", "WorkingDirectory", "TimeoutStopSec"}
    defaults = (ROOT / "deploy/ansible/roles/pqworker/defaults/main.yml").read_text()
    for variable in re.findall(r"^(pqworker_\w+):", defaults, re.MULTILINE):
        assert f"`{variable}`" in PAGE
        assert f"      {variable}:" in (ROOT / "deploy/ansible/roles/pqworker/meta/argument_specs.yml").read_text()
