"""Pages that find jobs: dead ones by reason, others by number, id, key or properties. Also background actions on all
jobs found.
"""
