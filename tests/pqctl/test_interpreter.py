"""The description of the interpreter's build by `pqctl doctor` and the benchmarks."""

from __future__ import annotations

import platform
from typing import Any

import pytest
from sockpq.interpreter import UNKNOWN, how_built

from bench.reports.recording import machine
from sockpqd.pqctl.doctor.machine_checks import interpreter

OFFICIAL = "'--build=x86_64-linux-gnu' '--enable-optimizations' '--enable-shared' '--with-lto'"
DEBIAN = "'--enable-shared' '--prefix=/usr' '--with-computed-gotos' 'CC=x86_64-linux-gnu-gcc'"
PYENV = "'--prefix=/home/ann/.pyenv/versions/3.11.7' '--enable-shared'"


@pytest.mark.parametrize(("config", "built"), [
    ({"CONFIG_ARGS": OFFICIAL, "PY_CORE_CFLAGS": "-O3 -Wall"}, "optimized, LTO"),
    ({"CONFIG_ARGS": "'--enable-optimizations'", "PY_CORE_CFLAGS": "-O3"}, "optimized"),
    ({"CONFIG_ARGS": "", "PY_CORE_CFLAGS": "-O3 -fprofile-use -fprofile-correction"}, "optimized"),
    ({"CONFIG_ARGS": "", "PY_CORE_CFLAGS": "-O3 -flto -fprofile-use"}, "optimized, LTO"),
    # The flag that a build with profiles would use is there in any case, so it says nothing.
    ({"CONFIG_ARGS": DEBIAN, "PY_CORE_CFLAGS": "-g -O2", "PGO_PROF_USE_FLAG": ""}, UNKNOWN),
    ({"CONFIG_ARGS": PYENV, "PY_CORE_CFLAGS": "-O3", "PGO_PROF_USE_FLAG": "-fprofile-use"}, UNKNOWN),
    ({"CONFIG_ARGS": "'--with-pydebug'", "PY_CORE_CFLAGS": "-Og", "Py_DEBUG": 1}, "not optimized"),
    ({"CONFIG_ARGS": "'CFLAGS=-O0'", "PY_CORE_CFLAGS": "-g -O0"}, "not optimized"),
    ({}, UNKNOWN),
])
def test_a_build_is_called_by_what_it_records(config: dict[str, Any], built: str) -> None:
    assert how_built(config) == built


def test_doctor_and_the_benchmarks_say_the_same() -> None:
    assert f"Python {platform.python_version()}, {how_built()}" in interpreter().found
    assert machine()["python"] == f"{platform.python_version()} ({how_built()})"
