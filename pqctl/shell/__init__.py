"""`pqctl shell`: the protocol, typed by hand.

`typed` makes bytes of what is typed, `line` is the connection, `leader` follows the leader with it, `words` completes,
`keyboard` reads a terminal, `run` puts them together. May use everything before it in the order of the rooms.
"""
