"""The lines that ask what is there."""

from __future__ import annotations

from gateway import requests
from gateway.grammar.heads import Words
from gateway.values import ArgumentError, name


def total(words: Words) -> requests.Total:
    if len(words) > 2:
        raise ArgumentError
    return requests.Total(name(words[1]) if len(words) == 2 else None)


def runlist(words: Words) -> requests.RunList:
    if len(words) > 2 or (len(words) == 2 and words[1] != b"DATA"):
        raise ArgumentError
    return requests.RunList(len(words) == 2)
