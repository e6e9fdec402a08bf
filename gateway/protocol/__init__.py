"""The text protocol: parsing bytes into commands and encoding replies. No IO.

May import limits.
"""
