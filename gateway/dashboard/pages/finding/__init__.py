"""Pages that find jobs: dead ones by what they died of, others by number, id or key."""
