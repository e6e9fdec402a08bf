"""Hashes of secrets."""

from __future__ import annotations

import pytest

from sockpqd.gateway.auth import scrypt

SALT, HASH = "c2FsdCBvZiAxNiBieXRl", "MTIzNDU2Nzg5MDEyMzQ1Ng=="


def test_a_hash_knows_its_secret_and_no_other() -> None:
    made = scrypt.hashed("pass word")
    again = scrypt.of_text(made.text)
    assert again == made
    assert again.matches("pass word")
    assert not again.matches("pass words")
    assert not again.matches("")
    assert "pass" not in made.text


def test_the_same_secret_has_another_hash_each_time() -> None:
    assert scrypt.hashed("secret").text != scrypt.hashed("secret").text


def test_known_hash() -> None:
    # The second test vector of RFC 7914, section 12.
    digest = "/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA=="
    assert scrypt.of_text(f"1024$8$16$TmFDbDAwMDA=${digest}").n == 1024
    made = scrypt.Scrypt(1024, 8, 16, b"NaCl", scrypt.of_text(f"1024$8$16$TmFDbDAwMDA=${digest}").digest)
    assert made.matches("password")


@pytest.mark.parametrize("text", [
    "", "password", f"16384$8$1${SALT}", f"16384$8$1${SALT}${HASH}$", f"16384$8$1$salt${HASH}", f"x$8$1${SALT}${HASH}",
    f"16383$8$1${SALT}${HASH}", f"512$8$1${SALT}${HASH}", f"2097152$8$1${SALT}${HASH}", f"16384$0$1${SALT}${HASH}",
    f"16384$33$1${SALT}${HASH}", f"16384$8$17${SALT}${HASH}", f"16384$8$0${SALT}${HASH}", f"-16384$8$1${SALT}${HASH}",
    f"1048576$8$1${SALT}${HASH}", f"16384$8$1$c2FsdA==${HASH}", f"16384$8$1${SALT}$c2FsdA==",
    f"16384$8$1${SALT}${'QUJD' * 30}", f"99999999999999999999$8$1${SALT}${HASH}", f"16384$8$1${SALT}$\x00\xe9",
])
def test_what_is_no_hash_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not|n must|would need|salt and hash)") as raised:
        scrypt.of_text(text)
    assert not text or text not in str(raised.value)
    assert HASH not in str(raised.value)


def test_the_hash_of_these_tests_is_right_as_it_stands() -> None:
    scrypt.of_text(f"16384$8$1${SALT}${HASH}")
