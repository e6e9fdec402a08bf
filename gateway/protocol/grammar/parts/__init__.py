"""Parts shared by several lines of the protocol: options, data after a line, and verbs without arguments."""
