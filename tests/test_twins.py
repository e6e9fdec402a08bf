"""Modules that stand in several distributions are the same.

sockpqd, sockpq-http and sockpq-sqs are installed apart; the latter have nothing in common but the client library, whose
users need no listener. What they need for theirs stands in each, and a correction of one copy has to be made in the
others as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TWINS = {
    "sockpq-http": "integrations/http/src/sockpq_http/server",
    "sockpq-sqs": "integrations/sqs/src/sockpq_sqs/door",
}
ALL = TWINS | {"sockpqd": "connections"}


@pytest.mark.parametrize(("name", "folders"), [("certificate.py", TWINS), ("places.py", TWINS), ("accepting.py", ALL)])
def test_these_distributions_have_the_same_module(name: str, folders: dict[str, str]) -> None:
    texts = {(ROOT / folder / name).read_text().replace(of, "") for of, folder in folders.items()}
    assert len(texts) == 1, f"{name} of {', '.join(folders)} differ"
