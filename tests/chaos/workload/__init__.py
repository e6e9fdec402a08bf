"""Clients under faults: producers, workers and callers that record everything they see.

Extended commands are those beyond the original protocol: delays, transactions, copies, keys, batches.
"""
