"""Places of connections: which address has how many, and who makes room."""

from __future__ import annotations

from sockpq_http.access.peer import is_local
from sockpq_http.server.places import RESERVED_PLACES, Places


class Held:
    """A connection, whether it was ended or not."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.ended = False

    def make_room(self) -> None:
        self.ended = True


def taken(places: Places, *addresses: str | None) -> list[Held]:
    held = [Held(address) for address in addresses]
    assert all(places.take(one) for one in held)
    return held


def test_the_oldest_stranger_of_the_address_that_has_most_makes_room() -> None:
    places = Places(4, 4)
    held = taken(places, "a", "b", "b", "b")
    taken(places, "c")
    assert [one.ended for one in held] == [False, True, False, False]
    assert len(places) == 4


def test_users_make_no_room() -> None:
    places = Places(3, 3)
    held = taken(places, "a", "a", "b")
    for one in held[:2]:
        places.recognise(one)
    taken(places, "c")
    assert [one.ended for one in held] == [False, False, True]
    places = Places(1, 1)
    (user,) = taken(places, "a")
    places.recognise(user)
    assert not places.take(Held("b"))
    places.leave(user)
    taken(places, "b")


def test_an_address_has_its_share_only() -> None:
    places = Places(4, 2)
    first, second, other = taken(places, "a", "a", "b")
    taken(places, "a")
    assert [one.ended for one in (first, second, other)] == [True, False, False]


def test_this_machine_has_all_places_and_some_more() -> None:
    places = Places(2, 1)
    held = taken(places, *[None] * (2 + RESERVED_PLACES))
    assert not any(one.ended for one in held)
    taken(places, None)
    assert [one.ended for one in held] == [True] + [False] * (1 + RESERVED_PLACES)
    taken(places, "a", "b")     # others are not kept out by these
    assert [one.ended for one in held] == [True, True, True] + [False] * (RESERVED_PLACES - 1)
    assert len(places) == 2 + RESERVED_PLACES


def test_what_is_reserved_for_this_machine_makes_no_room() -> None:
    places = Places(2, 2)
    own = taken(places, *[None] * RESERVED_PLACES)
    strangers = taken(places, "a", "b")
    taken(places, "c")
    assert [one.ended for one in strangers] == [True, False]
    assert not any(one.ended for one in own)


def test_a_place_that_was_given_up_is_given_back_once() -> None:
    places = Places(1, 1)
    (first,) = taken(places, "a")
    (second,) = taken(places, "a")
    places.leave(first)
    assert len(places) == 1
    places.leave(second)
    places.leave(second)
    assert len(places) == 0


def test_which_addresses_are_this_machine() -> None:
    assert [is_local(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "", "10.0.0.1", "x")] == [
        True, True, True, True, True, False, False]
