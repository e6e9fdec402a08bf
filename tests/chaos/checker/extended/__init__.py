"""Jobs put or taken by extended commands (delays, transactions, copies, keys, batches): their records and rules."""
