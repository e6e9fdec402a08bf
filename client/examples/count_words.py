"""Divide the work and put the results together: python count_words.py < book.txt

The parts of one text are one item. Threads count the words of a part each; the one whose DONE ends the item adds up.
"""

import json
import sys
import threading
from collections import Counter

from sockpq import Client

LINES_PER_PART = 1000


def work(client: Client) -> None:
    """Count parts until all are done."""
    while job := client.get("parts", block="until_done", expire=60):
        counts = Counter(job.data.decode().lower().split())
        client.put("counts", json.dumps(counts).encode())
        if job.done().item_done:
            add_up(client)


def add_up(client: Client) -> None:
    """Add up the results when all parts have been counted."""
    total: Counter[str] = Counter()
    while job := client.get("counts", expire=60):
        with job:
            total.update(json.loads(job.data))
    for word, count in total.most_common(5):
        print(count, word)


with Client() as client:
    lines = sys.stdin.readlines()
    parts = ["".join(lines[start : start + LINES_PER_PART]) for start in range(0, len(lines), LINES_PER_PART)]
    client.put_many("parts", [part.encode() for part in parts], item="book")
    threads = [threading.Thread(target=work, args=[client]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
