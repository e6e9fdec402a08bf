"""The building blocks of several pages: their frame and its input, long lists, pictures, bodies of jobs.

Imports nothing of the pages.
"""
