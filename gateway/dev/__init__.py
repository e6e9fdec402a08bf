"""`sockpqd --dev`: nodes on loopback for trying things out, without a configuration file.

`alone` is one node in this process; `cluster` is several, as children of this process. May use config, nothing else.
"""
