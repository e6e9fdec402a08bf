"""What several lines of the protocol share: options, the data that follow them, and that nothing follows a verb."""
