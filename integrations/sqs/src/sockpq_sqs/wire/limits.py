"""Limits on what is decoded, each with its reason."""

from __future__ import annotations

# Parameters of a request in the Query protocol. Ten messages with ten attributes of three parameters each, their other
# members and a signature in the URL are fewer than 500.
PARAMETERS_MAX = 2000

# Elements of a list or a map in JSON: Amazon allows 10 entries of a batch, 10 attributes and 50 tags, and refuses more
# with errors of their own. Beyond this number they are not even looked at: 4 MiB of tiny ones take 100 MB of memory.
ELEMENTS_MAX = 1000

# Parts of a parameter's name: "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1" has seven.
NAME_PARTS_MAX = 8

# Digits of the number of an entry in a parameter's name.
INDEX_DIGITS_MAX = 9
