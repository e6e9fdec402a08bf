"""`sockpq-beanstalkd`: beanstalkd's protocol on the application's machine, on a cluster of sockpqd.

The client's connection ends here and crosses no network; a change of the cluster's leader is a pause in one answer.
The protocol is in `beanstalk`; reaching the cluster is left to the client library sockpq.
"""
