"""kombu's words in the server's: names, messages, queue arguments, URLs and errors. It talks to nobody."""
