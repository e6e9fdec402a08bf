"""Jobs outside memory: pages of jobs behind the front of their queue, or DELAYED, in a store that the caller provides.

Local to one node: paging changes neither a reply nor a byte of a snapshot. Uses `store` and `limits` only.
"""
