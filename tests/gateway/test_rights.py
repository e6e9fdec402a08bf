"""Rights: their notation and their meaning."""

from __future__ import annotations

import pytest

from sockpqd.gateway import rights
from sockpqd.gateway.limits import RIGHTS_MAX


def test_each_right_is_for_all_queues_or_for_those_that_begin_so() -> None:
    found = rights.of_words(["put:mail*", "put:print*", "get", "queue:a*"])
    assert "mail.bulk".startswith(found.put)
    assert not "ma".startswith(found.put)
    assert "anything".startswith(found.get)
    assert found.put == ("mail", "print")
    assert (found.get, found.queue, found.admin) == (("",), ("a",), ())
    assert found.seen == ("mail", "print", "", "a")


def test_items_are_those_of_put_unless_there_is_a_right_for_them() -> None:
    assert rights.of_text("put:mail*,get").item == ("mail",)
    assert rights.of_text("put:mail*,item:order*,item:doc*").item == ("order", "doc")
    assert rights.of_text("item:order*").seen == ()
    assert rights.of_text("item").item == ("",)
    assert rights.of_text("get").item == ()


def test_none_is_a_dash() -> None:
    found = rights.of_text("-")
    assert found == rights.of_words([])
    assert found.text == "-"
    assert not "mail".startswith(found.seen)


def test_admin_for_all_includes_all_others() -> None:
    found = rights.of_text("admin,put:mail*")
    assert found.put == found.get == found.queue == found.admin == ("",)
    assert found.text == "admin,put:mail*"
    part = rights.of_text("admin:mail*")
    assert (part.put, part.get, part.admin, part.seen) == ((), (), ("mail",), ("mail",))


@pytest.mark.parametrize(("written", "text"), [
    ("put,put,get", "put,get"), ("put:*", "put"), ("get:*,put:x*,get", "get,put:x*"), ("put:-*", None),
    ("put:a.b:c@d-e_f*", "put:a.b:c@d-e_f*"), ("put:", None), ("put*", None), ("Put", None), ("", None), ("put,", None),
    ("put: mail*", None), ("-,put", None), ("put:mail", None), ("put:ma*il*", None), ("put:mail*x", None),
    ("read", None),
    (f"put:{'x' * 255}*", f"put:{'x' * 255}*"), (f"put:{'x' * 256}*", None),
])
def test_text_is_read_and_written_in_one_form(written: str, text: str | None) -> None:
    if text is None:
        with pytest.raises(ValueError, match="is not a right"):
            rights.of_text(written)
    else:
        assert rights.of_text(written).text == text
        assert rights.of_text(text) == rights.of_text(written)


def test_there_is_an_end_to_the_number_of_rights() -> None:
    words = [f"put:{number}*" for number in range(RIGHTS_MAX)]
    assert len(rights.of_words(words).put) == RIGHTS_MAX
    with pytest.raises(ValueError, match="at most"):
        rights.of_words([*words, "get"])


def test_what_a_newer_version_has_written_into_the_log_gives_no_right() -> None:
    assert rights.of_log("put:mail*,peek,get:[a-z]*") == rights.of_text("put:mail*")
    assert rights.of_log("-") == rights.of_text("-")
