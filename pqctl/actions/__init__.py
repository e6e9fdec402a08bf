"""The actions of the commands, called with parsed arguments."""
