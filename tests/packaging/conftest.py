"""Distributions that all tests of this folder share: making them takes seconds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.packaging.distributions import PIP, QUICKLY, ROOT, SOURCES, build, run


@pytest.fixture(scope="package")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install what building the sources needs: once, where builds in isolation would do it for each."""
    folder = tmp_path_factory.mktemp("backend")
    needs = {need for source in SOURCES for need in tomllib.loads(
        (source / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]}
    run(*PIP, "install", *QUICKLY, "--target", folder, *needs, folder=folder)
    return folder


@pytest.fixture(scope="package")
def built(backend: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all wheels and sources."""
    return build(ROOT, backend, tmp_path_factory.mktemp("dist"))
