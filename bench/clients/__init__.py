"""What a Python program gets: sockpq beside the usual clients of other queues, in rates and in CPU of the program."""
