"""`pqctl shell`: the protocol, typed by hand.

`input` turns typed text into bytes, `connection` sends them to a server, `leader_connection` follows the leader,
`completion` completes words, `keyboard` reads a terminal, and `run` puts them together. May use everything before it in
the order of the rooms.
"""
