"""What threads do behind the program's back, so that an event loop never waits: fetch jobs, and say what happened."""
