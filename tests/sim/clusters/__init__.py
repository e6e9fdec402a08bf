"""Two simulated clusters that programs use as one, and operators that change their map."""
