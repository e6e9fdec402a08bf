"""How a command answers: tables, JSON, exit codes, errors, files."""
