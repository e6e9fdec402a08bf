"""Sessions and connections of several libraries, seen as one: `found.database_of(session)`; `url.py` opens new ones.

It may use `errors` and `sql`. The libraries are imported only where a program uses them.
"""
