"""The tests of other implementations of SQS, run against ours, and where these expect what Amazon does not do."""
