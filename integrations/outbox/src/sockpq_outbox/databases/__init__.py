"""Sessions and connections of several libraries, seen as one: `found.database_of(session)`; `sources.py` opens others.

It may use `errors` and `sql`. The libraries are imported only where a program uses them.
"""
