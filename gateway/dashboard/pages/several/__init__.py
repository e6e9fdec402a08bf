"""The page of several clusters that programs use as one."""
