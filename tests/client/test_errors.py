"""The errors as values."""

from __future__ import annotations

import copy
import pickle

import pytest
from sockpq import BatchFailed, JobNotFound, NoOutput, OutcomeUnknown, SockpqError

ERRORS = [OutcomeUnknown("lost"), JobNotFound("no"), NoOutput("late", "i5"), BatchFailed("some", (1,), (2, 3))]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_goes_from_process_to_process(error: SockpqError) -> None:
    """One that cannot be unpickled breaks a process pool, or makes it wait for ever."""
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
