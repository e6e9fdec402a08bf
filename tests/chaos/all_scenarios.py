"""All scenarios that there are."""

from __future__ import annotations

from tests.chaos.paged_scenarios import PAGED
from tests.chaos.scenarios import SCENARIOS

ALL = (*SCENARIOS, *PAGED)
