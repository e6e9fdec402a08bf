"""What several pages are made from: the frame of each and what it is given, long lists, pictures, bodies of jobs.

Imports nothing of the pages.
"""
