"""The tests with Django 6: in `make test-frameworks`, where there is a Python for it."""

from __future__ import annotations

import os

import pytest

from tests.django.conftest import ALL
from tests.django.django_six import TESTS, interpreter, made, make, run


@pytest.mark.skipif(not ALL and "PYTHON312" not in os.environ, reason="Django 6: in `make test-frameworks`")
def test_the_backend_with_django_6() -> None:
    python = made()
    if python is None:
        found = interpreter()
        if found is None:
            pytest.skip("there is no Python 3.12 or newer that can make environments: PYTHON312=")
        python = make(found)
    done = run(python, *TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
