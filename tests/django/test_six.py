"""The tests with Django 6: with PYTHON312= all of them, otherwise some where an environment has been made before."""

from __future__ import annotations

import os

import pytest

from tests.django.django_six import DJANGO, TESTS, interpreter, made, make, run

GIVEN = os.environ.get("PYTHON312")


@pytest.mark.skipif(made() is None and GIVEN is None, reason=f"no environment with {DJANGO}: give PYTHON312=python3.12")
def test_the_backend_with_django_6() -> None:
    python = made()
    if python is None:
        found = interpreter()
        if found is None:
            pytest.skip("PYTHON312 is no Python 3.12 or newer that can make environments")
        python = make(found)
    done = run(python, *(TESTS if GIVEN else TESTS[:1]))
    assert done.returncode == 0, done.stdout + done.stderr
