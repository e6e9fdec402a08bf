"""What clients do while things break: producers, workers and callers that write down everything they see.

Extended commands are those beyond the original protocol: delays, transactions, copies, keys, batches.
"""
