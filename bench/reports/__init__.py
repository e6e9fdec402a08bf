"""What a benchmark has found: records, tables and pictures."""
