"""What clients do while things break: producers, workers and callers that write down everything they see."""
