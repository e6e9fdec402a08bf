"""The lines that ask what is there."""

from __future__ import annotations

from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, name
from gateway.protocol.grammar.heads import Words


def total(words: Words) -> requests.Total:
    if len(words) > 2:
        raise ArgumentError
    return requests.Total(name(words[1]) if len(words) == 2 else None)


def runlist(words: Words) -> requests.RunList:
    if len(words) > 2 or (len(words) == 2 and words[1] != b"DATA"):
        raise ArgumentError
    return requests.RunList(len(words) == 2)
