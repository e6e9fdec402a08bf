"""The output of commands: tables, JSON, exit codes, errors, files."""
