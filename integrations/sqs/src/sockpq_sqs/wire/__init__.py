"""Both protocols of SQS as bytes: requests to Structs of the model, answers and errors back. No input or output.

The Structs are walked, so no action is known by name here.
"""

from sockpq_sqs.wire.exchange import METHODS, Document, Exchange, exchange_of

__all__ = ["METHODS", "Document", "Exchange", "exchange_of"]
