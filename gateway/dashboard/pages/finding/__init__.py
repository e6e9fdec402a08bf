"""Pages that find jobs: dead ones by what they died of."""
