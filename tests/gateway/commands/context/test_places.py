"""Places are few, and one owner has only a share of them."""

from __future__ import annotations

import pytest

from sockpqd.gateway.commands.context.places import Places, owner_of


def test_one_owner_has_a_share_and_all_together_have_all() -> None:
    places = Places(3, 2)
    assert [places.take("a") for _ in range(3)] == [True, True, False]
    assert places.free("b")
    assert places.take("b")
    assert (places.taken, places.free("c"), places.take("c")) == (3, False, False)
    places.leave("a")
    assert (places.taken, places.free("a"), places.take("c")) == (2, True, True)
    for owner in ("a", "b", "c"):
        places.leave(owner)
    assert (places.taken, places._owners) == (0, {})


@pytest.mark.parametrize(("user", "peer", "owner"), [
    ("ann", "10.0.0.1:5", "ann"), (None, "10.0.0.1:5", "10.0.0.1"), ("", "10.0.0.1:5", "10.0.0.1"),
    (None, "2001:db8::7:5", "2001:db8::/64"),
])
def test_an_owner_is_a_user_or_without_users_an_address(user: str | None, peer: str, owner: str) -> None:
    assert owner_of(user, peer) == owner
