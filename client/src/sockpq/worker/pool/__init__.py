"""The pool of a worker: takes jobs, gives them to its children, keeps their leases, says what became of them.

What is decided (`balancing`, `autoscale`, `leases`, `memory`) stands apart from what is done (`request`, `endings`);
`pool` puts them together with the children.
"""
