"""Lines of one word."""

from __future__ import annotations

from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError
from gateway.protocol.grammar.heads import Parse, Words


def alone(request: requests.Command) -> Parse:
    """A verb that stands alone."""
    def parse(words: Words) -> requests.Command:
        if len(words) != 1:
            raise ArgumentError
        return request
    return parse
