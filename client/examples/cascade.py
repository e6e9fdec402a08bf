"""A cascade of three stages, exactly one result for each job: python cascade.py < lines.txt

`move()` ends a job in one queue and puts it into the next in one step, so no crash can come between the two. A worker
whose lease ends before that loses the job to another one, and its move() is refused: no result exists twice.
"""

import sys
import threading

from sockpq import Client, JobNotFound

STAGES = {                          # queue: what is done to its jobs, and the queue they go to then
    "clean": (bytes.strip, "lower"),
    "lower": (bytes.lower, "count"),
    "count": (lambda line: b"%d words: %s" % (len(line.split()), line), "results"),
}
WORKERS = 8


def work(client: Client) -> None:
    """Work on whatever stage has a job."""
    for job in client.consume(list(STAGES), expire=30, until_done=True):
        step, following = STAGES[job.queue]
        try:
            job.move(following, data=step(job.data))
        except JobNotFound:
            print("lost to another worker:", job.data, file=sys.stderr)


with Client() as client:
    client.put_many("clean", [line.encode() for line in sys.stdin])
    threads = [threading.Thread(target=work, args=[client]) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while results := client.get_many(1000, "results", expire=60):
        for result in results:
            print(result.data.decode())
        client.done_many(results)
