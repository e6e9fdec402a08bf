"""No mail twice: python mail_once.py ann@example.org bob@example.org ..

The key of a job is the recipient. While such a job is unfinished a second one is refused, and the queue keeps the keys
of finished jobs for a day, so that a program that is started again sends nothing twice.
"""

import hashlib
import sys

from sockpq import Client, JobExists

DAY = 86_400

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used

with Client() as client:
    client.queue_config("mailing", keep=DAY)
    for address in sys.argv[1:]:
        try:
            client.put("mailing", address.encode(), key=hashlib.sha256(address.encode()).hexdigest())
        except JobExists:
            print(address, "has it, or will have it")
    for job in client.consume("mailing", expire=60, until_done=True):
        print("mail to", job.data.decode())
