"""The program `pqoutbox`: the relay, and commands for operators. It may use every other room."""
