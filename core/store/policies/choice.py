"""The random choice among queues: uniform, and the same on every node.

The leader puts 64 random bits into each log entry; the n-th operation of the entry gets them plus n as its seed.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


def splitmix64(number: int) -> int:
    """Return 64 well mixed bits of `number` (the finalizer of Steele, Lea and Flood's SplitMix)."""
    bits = (number + 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def draw(count: int, seed: int) -> int:
    """Draw a number from 0 to `count` - 1, each equally likely over all seeds; `count` > 0 (spec/state-machine 4.2)."""
    return (splitmix64(seed) * count) >> 64
