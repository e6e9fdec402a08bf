"""Lines of one word."""

from __future__ import annotations

from gateway import requests
from gateway.grammar.heads import Parse, Words
from gateway.values import ArgumentError


def alone(request: requests.Command) -> Parse:
    """A verb that stands alone."""
    def parse(words: Words) -> requests.Command:
        if len(words) != 1:
            raise ArgumentError
        return request
    return parse
