"""A remote call: python remote_call.py serve    and elsewhere: python remote_call.py 12345678901

The caller waits for the factors of a number; any of the servers computes them. Either may die: the job is handed out
again when its lease ends, and the answer waits for a caller.
"""

import signal
import sys

from sockpq import Client

if len(sys.argv) < 2:
    sys.exit(__doc__)           # it says how this is used
signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases


def factors(number: int) -> list[int]:
    found, candidate = [], 2
    while candidate * candidate <= number:
        while number % candidate == 0:
            found.append(candidate)
            number //= candidate
        candidate += 1
    return [*found, number]


with Client() as client:
    if sys.argv[1] == "serve":
        for question in client.consume("numbers", expire=60):
            answer = " ".join(map(str, factors(int(question.data))))
            client.put("factors", answer.encode(), item=question.item)
    else:
        with client.call("numbers", sys.argv[1].encode(), "factors", expire=60, wait=60) as result:
            print(result.data.decode())
