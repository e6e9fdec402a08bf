"""Background threads that fetch jobs and send acknowledgements, so that an event loop never blocks."""
