"""The grammar of the commands on jobs: put, take and end them, and those on one that is selected."""
