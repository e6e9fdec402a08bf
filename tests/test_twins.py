"""Modules that stand in two distributions are the same.

sockpq-http and sockpq-sqs are installed apart, and have nothing in common but the client library, whose users need no
listener. What both need for theirs stands twice, and a correction of one copy has to be made in the other as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TWINS = {"http": "integrations/http/src/sockpq_http/server", "sqs": "integrations/sqs/src/sockpq_sqs/door"}


@pytest.mark.parametrize("name", ["certificate.py", "places.py"])
def test_both_distributions_have_the_same_module(name: str) -> None:
    texts = {(ROOT / folder / name).read_text().replace(f"sockpq-{of}", "sockpq-") for of, folder in TWINS.items()}
    assert len(texts) == 1, f"{name} of sockpq-http and of sockpq-sqs differ"
