"""The pool of a worker: fetches jobs, dispatches them to its children, keeps their leases and reports the outcomes.

Decisions (`balancing`, `autoscale`, `leases`, `memory`) are separate from actions (`fetch`, `outcome_sender`); `pool`
puts them together with the children.
"""
