"""Messages: how one is a job, and the actions that send, receive, delete and hide them."""
