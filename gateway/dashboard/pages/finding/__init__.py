"""Pages that find jobs: dead ones by what they died of, others by number, id, key or what they are; and what is done in
the background with all that are found.
"""
