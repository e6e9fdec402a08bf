"""Compares sockpq with the usual Python clients of other queues: rates, and processor time of the program."""
