"""The reference model of the queue: the same rules, written as simply as possible and independently of core."""
