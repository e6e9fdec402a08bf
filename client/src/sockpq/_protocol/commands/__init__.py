"""Every call, declared once: its signature and documentation, the line it sends, and the reader of its answer.

The functions check their arguments (TypeError, BadArguments, DataTooLarge) and do no IO. client/tools/faces.py
generates the methods of the clients from the functions that are marked with `@call`.
"""
