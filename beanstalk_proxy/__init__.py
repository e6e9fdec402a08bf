"""`sockpq-beanstalkd`: beanstalkd's protocol beside the application, on a cluster of sockpqd.

The client's connection ends here and crosses no network; a change of the cluster's leader is a pause in one answer.
What the protocol is stands in `beanstalk`; how the cluster is reached is up to the client library sockpq.
"""
