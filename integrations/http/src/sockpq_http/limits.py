"""Limits of requests, in one place; the program has others, options of `serve` (server/settings.py)."""

WAIT_S_MAX = 60.0               # of a request that waits: balancers and clients give up on longer ones
TAKEN_JOBS_MAX = 1000           # of one take: as many as an answer of ordinary jobs should have
PUT_JOBS_MAX = 1000             # of one request
OPERATIONS_MAX = 998            # of one transaction, and jobs of one request with a key: 1,000 with its markers
IDS_MAX = 2000                  # of one done, later or touch of several jobs: as the protocol's TOUCH
FOUND_JOBS_MAX = 10_000         # of one search
SEEN_JOBS_MAX = 1000            # of one look at a queue
KEY_CHARACTERS_MAX = 256        # of an Idempotency-Key
IDEMPOTENCY_S = 3600.0          # for which a key is remembered
IDEMPOTENCY_S_MAX = 86_400.0
KEYS_AGAIN_S = 60               # after which a put may come again for whose key there was no room
RETRY_S = 1                     # after which a refused request may come again: failovers take less
QUIET_S = 15.0                  # without an event, after which a stream has a comment, so that nobody cuts it
