"""The grammar of the protocol: lines to requests."""

from gateway.protocol.grammar.heads import CloneHead, DataHead, Head, NumberedHead, PutHead, PutsHead, SkipHead, Words
from gateway.protocol.grammar.puts import put
from gateway.protocol.grammar.servers import CLUSTER
from gateway.protocol.grammar.table import VERBS, block_length, length_at

__all__ = [
    "CLUSTER",
    "VERBS",
    "CloneHead",
    "DataHead",
    "Head",
    "NumberedHead",
    "PutHead",
    "PutsHead",
    "SkipHead",
    "Words",
    "block_length",
    "length_at",
    "put",
]
