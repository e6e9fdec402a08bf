"""`pqctl job ..` and `queue peek`: work with single jobs, change them, look at them.

May import the same rooms as `actions`.
"""
