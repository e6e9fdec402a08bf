"""Events on their way to subscribers: what this node remembers, what each subscriber asked for, and the lines.

Knows nothing of the protocol but these lines, and clients by what they can be sent only.
"""
