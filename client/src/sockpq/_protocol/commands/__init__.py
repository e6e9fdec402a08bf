"""Every call, declared once: its signature and documentation, the line it sends, and how the answer is read.

The functions check their arguments (TypeError, BadArguments, DataTooLarge) and do no IO. client/tools/faces.py makes
the methods of the clients from those that are marked with `@call`.
"""
