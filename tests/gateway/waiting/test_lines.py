"""Lines of numbers, against a plain dict of lists."""

from __future__ import annotations

from random import Random

from sockpqd.gateway.waiting.lines import Lines


def test_numbers_are_in_order_whenever_they_come_and_go() -> None:
    random, lines, model = Random(1), Lines[str](), dict[str, list[int]]()
    for number in range(3000):
        key = random.choice("abc")
        present = model.setdefault(key, [])
        if present and random.random() < 0.6:
            gone = random.choice(present)
            present.remove(gone)
            lines.remove(key, gone)
        elif random.random() < 0.02:
            assert lines.take(key) == present
            present.clear()
        else:
            number -= random.randrange(2) * 100_000
            lines.add(key, number)
            present.append(number)
            present.sort()
        assert lines.first(key) == (present[0] if present else None)
        assert lines.numbers(key) == present
        assert lines.length(key) == len(present)
        assert lines.keys() == {key for key, numbers in model.items() if numbers}


def test_a_waiter_may_be_twice_in_a_line() -> None:
    lines = Lines[str]()
    for _ in range(2):
        lines.add("q", 7)
    assert lines.length("q") == 2
    for _ in range(2):
        lines.remove("q", 7)
    assert not lines
