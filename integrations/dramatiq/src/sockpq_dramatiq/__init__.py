"""Dramatiq on sockpqd: a broker and a result backend."""
