"""The grammar of the protocol: lines to requests."""

from gateway.grammar.heads import CloneHead, Head, NumberedPutHead, PutHead, SkipHead, Words
from gateway.grammar.servers import CLUSTER
from gateway.grammar.table import VERBS, block_length

__all__ = ["CLUSTER", "VERBS", "CloneHead", "Head", "NumberedPutHead", "PutHead", "SkipHead", "Words", "block_length"]
