"""The reasons of msgspec for refusing a document, as sentences for its author."""

from __future__ import annotations

import re

_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def sentence(error: Exception) -> str:
    """Reword an error of msgspec as `limits.foo: unknown key`; it begins with the place and has no back-quotes."""
    match = _PLACE.fullmatch(str(error))
    assert match is not None
    what, place = match["what"], match["path"] or ""
    if inner := _UNKNOWN.fullmatch(what):
        return f"{_join(place, inner[1])}: unknown key"
    if inner := _MISSING.fullmatch(what):
        return f"{_join(place, inner[1])}: this key is required"
    what = what.replace("`", "")
    return f"{place}: {what[:1].lower()}{what[1:]}" if place else f"{what[:1].lower()}{what[1:]}"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
