"""Limits on what is decoded, each with its reason."""

from __future__ import annotations

# Parameters of a request in the Query protocol. Ten messages with ten attributes of three parameters each, their other
# members and a signature in the URL are fewer than 500.
PARAMETERS_MAX = 2000

# Parts of a parameter's name: "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1" has seven.
NAME_PARTS_MAX = 8

# Digits of the number of an entry in a parameter's name.
INDEX_DIGITS_MAX = 9
