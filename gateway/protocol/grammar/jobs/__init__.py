"""The grammar of the commands on jobs: to put, take and end jobs, and commands on a selected job."""
