"""The pool of a worker: takes jobs, gives them to its children, keeps their leases, says what became of them.

What is decided (balancing, autoscale, leases, memory) is apart from what is done (the children of each kind, `ends`,
`taking`), and `pool` puts them together.
"""
