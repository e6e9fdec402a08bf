"""Records of jobs that have ended, in queues that keep them (QUEUE CONFIG .. RETAIN), in pages of their own.

Uses `store`, `pages` and `limits` only.
"""
