"""Jobs outside memory: pages of those behind the front of their queue, or DELAYED, in a store that the caller provides.

A matter of one node: what is paged changes neither a reply nor a byte of a snapshot. Uses `store` and `limits` only.
"""
