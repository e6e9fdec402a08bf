"""Words to values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.gateway.config import split_address
from sockpqd.gateway.protocol.arguments import (
    ArgumentError,
    address,
    between,
    key,
    milliseconds,
    name,
    node,
    plain_word,
    positive_ms,
    queues,
    session,
    signed,
    unix_ms,
    unsigned,
)


@given(st.integers(0, 2**64 - 1), st.integers(0, 30))
def test_unsigned_reads_every_64_bit_number_with_zeros_before_it(number: int, zeros: int) -> None:
    assert unsigned(b"0" * zeros + b"%d" % number) == number


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_reads_every_64_bit_number(number: int) -> None:
    assert signed(b"%d" % number) == number
    if number >= 0:
        assert signed(b"+%d" % number) == number


@pytest.mark.parametrize(
    "word", [b"", b"-1", b"+1", b"1.0", b"1_0", b"0x1", b"\xb2", b"18446744073709551616", b"9" * 5000],
)
def test_unsigned_refuses(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        unsigned(word)


@pytest.mark.parametrize(
    "word",
    [b"", b"-", b"+", b"--1", b"+-1", b"1-", b"9223372036854775808", b"-9223372036854775809", b"-" + b"9" * 5000],
)
def test_signed_refuses(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        signed(word)


@pytest.mark.parametrize(("word", "expected_ms"), [
    (b"0", 0), (b"5", 5000), (b"5.0", 5000), (b"0.001", 1), (b"0.0001", 1), (b"0.0000", 0), (b"1.9991", 2000),
    (b"000000000012", 12_000), (b"0.50000000000000000000000000000000", 500), (b"1." + b"0" * 6000 + b"1", 1001),
    (b"4294967295", 4_294_967_295_000),
])
def test_seconds_become_milliseconds_rounded_up(word: bytes, expected_ms: int) -> None:
    assert milliseconds(word) == expected_ms


@pytest.mark.parametrize(
    "word", [b"", b"-1", b"-0", b"+1", b"1.", b".5", b"1e3", b"1,5", b"4294967295.001", b"9" * 5000],
)
def test_seconds_refuse(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        milliseconds(word)


@pytest.mark.parametrize(("word", "expected_ms"), [
    (b"0", 0), (b"1795130000", 1_795_130_000_000), (b"1795130000.0001", 1_795_130_000_001), (b"0.5", 500),
    (b"4611686018427387.904", 2**62), (b"00000000000000000000000000007", 7000),
])
def test_unix_time_becomes_milliseconds_rounded_up(word: bytes, expected_ms: int) -> None:
    assert unix_ms(word) == expected_ms


@pytest.mark.parametrize("word", [b"", b"-1", b"+1", b"1.", b"x", b"4611686018427387.905", b"9" * 5000])
def test_unix_time_refuses(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        unix_ms(word)


def test_a_positive_time_is_more_than_nothing() -> None:
    assert positive_ms(b"0.0001") == 1
    for word in (b"0", b"0.0000", b"-1", b"x"):
        with pytest.raises(ArgumentError):
            positive_ms(word)


@given(st.integers(0, 30))
def test_a_number_lies_between_its_limits(number: int) -> None:
    read = between(10, 20)
    if 10 <= number <= 20:
        assert read(b"%d" % number) == number
    else:
        with pytest.raises(ArgumentError):
            read(b"%d" % number)


@pytest.mark.parametrize("word", [b"a", b"_.:-", b".x", b"-", b"A9" * 32])
def test_keys_and_words(word: bytes) -> None:
    assert key(word) == plain_word(word) == word.decode()


@pytest.mark.parametrize("word", [b"", b"a/b", b"a@b", b"a|b", b"\xe4", b"a\n", b"k" * 129])
def test_keys_and_words_refuse(word: bytes) -> None:
    for read in (key, plain_word):
        with pytest.raises(ArgumentError):
            read(word)
    assert key(b"k" * 128)
    assert plain_word(b"k" * 64)
    with pytest.raises(ArgumentError):
        plain_word(b"k" * 65)


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_sessions_are_read_as_they_are_called(number: int, secret: int) -> None:
    assert session(f"{number}_{secret:016x}".encode()) == (number, secret)


@given(st.from_regex(r"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}", fullmatch=True))
def test_names_are_kept_as_they_are(text: str) -> None:
    assert name(text.encode()) == text


@pytest.mark.parametrize("word", [
    b"", b":a", b"@a", b"-a", b"a b", b"a,b", b"a\n", b"\xc3\xa4", b"a" * 256, b"*", b"a|b",
])
def test_names_refuse(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        name(word)


def test_queue_lists_name_each_queue_once_in_the_order_given() -> None:
    assert queues(b"b|a|b|c|a") == ("b", "a", "c")
    assert queues(b"a") == ("a",)


@pytest.mark.parametrize("word", [b"|", b"a|", b"|a", b"a||b", b"a|*"])
def test_queue_lists_refuse_empty_parts_and_bad_names(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        queues(word)


@given(st.one_of(st.ip_addresses(), st.from_regex(r"[a-z][a-z0-9-]{0,10}(\.[a-z]{2,5})?", fullmatch=True)),
       st.integers(1, 65535))
def test_an_address_is_joined_as_the_configuration_splits_it(host: object, port: int) -> None:
    assert split_address(address(str(host).encode(), b"%d" % port)) == (str(host), port)


@pytest.mark.parametrize(("host", "port", "expected"), [
    (b"10.0.0.4", b"011362", "10.0.0.4:11362"),
    (b"2001:DB8:0::5", b"1", "[2001:db8::5]:1"),
    (b"Host-4.example", b"65535", "Host-4.example:65535"),
])
def test_an_address_is_written_in_one_way(host: bytes, port: bytes, expected: str) -> None:
    assert address(host, port) == expected


@pytest.mark.parametrize("host", [
    b"", b"10.0.0.256", b"10.0.0", b"7", b".", b"1:2", b"[::1]", b"::1%eth0", b"::%1", b"a/b", b"a:1", b"*",
    b"\xc3\xa4", b"a" * 254,
])
def test_an_address_refuses_what_is_no_host(host: bytes) -> None:
    with pytest.raises(ArgumentError):
        address(host, b"1")


@pytest.mark.parametrize("port", [b"", b"0", b"65536", b"-1", b"+1", b"1.0", b"http", b"9" * 5000])
def test_an_address_refuses_what_is_no_port(port: bytes) -> None:
    with pytest.raises(ArgumentError):
        address(b"10.0.0.4", port)


@given(st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True))
def test_names_of_nodes_are_kept_as_they_are(text: str) -> None:
    assert node(text.encode()) == text


@pytest.mark.parametrize("word", [b"", b"a:b", b"a@b", b"a/b", b"a\n", b"\xc3\xa4", b"a" * 65, b"*", b"a|b"])
def test_names_of_nodes_refuse(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        node(word)
