"""Many jobs through the program, with its processor time; or while it is killed again and again: nothing may be lost.

    python -m tests.http.push.campaign --jobs 20000
    python -m tests.http.push.campaign --jobs 20000 --kill-every 1 --delay 0.05

One node, one receiver and one program (with kills, two) on this machine. With `--signed` requests are signed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sockpq import Client
from sockpq.testing import Server

CONFIG = """
[push]
ttl_s = 5
[targets.a]
queues = ["hooks"]
url = "http://127.0.0.1:{port}/hook"
allow = ["127.0.0.1"]
concurrency = {concurrency}
"""
BATCH = 1000
POLL_S = 0.1
PATIENCE_S = 120.0
TICKS = os.sysconf("SC_CLK_TCK")


def program(config: Path, address: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "sockpq_http.main", "push", str(config)],
                            env={**os.environ, "SOCKPQ_SERVERS": address}, stderr=subprocess.DEVNULL)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=200, help="of each job")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="kill one of two programs")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="of the receiver's answers")
    parser.add_argument("--signed", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="push-") as folder, Server() as server, Client(server.address) as client:
        receiver = subprocess.Popen(
            [sys.executable, "-m", "tests.http.push.fast_receiver", str(options.delay)], stdout=subprocess.PIPE,
            text=True)
        assert receiver.stdout
        text = CONFIG.format(port=receiver.stdout.readline().strip(), concurrency=options.concurrency)
        if options.signed:
            secrets = Path(folder) / "secrets"
            secrets.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
            secrets.chmod(0o600)
            text += f'secret_file = "{secrets}"\n'
        config = Path(folder) / "push.toml"
        config.write_text(text)
        client.queue_create("hooks", numbered=True)
        for first in range(0, options.jobs, BATCH):
            client.put_many("hooks", [
                str(number).rjust(options.bytes, "0").encode()
                for number in range(first, min(first + BATCH, options.jobs))
            ])
        running = [program(config, server.address) for _ in range(2 if options.kill_every else 1)]
        before, begun, killed = cpu_s(receiver.pid), 0.0, 0
        due = time.monotonic() + (options.kill_every or float("inf"))
        begin_s, last, moved = 0.0, 0, time.monotonic()
        while True:
            total = client.total("hooks")
            if not begun and total.jobs < options.jobs:
                begun, begin_s = time.monotonic(), cpu_s(running[0].pid)
                left = total.jobs
            if not total.jobs and not total.running:
                break
            if time.monotonic() - moved > PATIENCE_S:
                raise SystemExit(f"{total.jobs} jobs are left, and nothing happens")
            if total.jobs != last:
                last, moved = total.jobs, time.monotonic()
            if time.monotonic() > due:
                victim = random.randrange(2)
                running[victim].kill()
                running[victim].wait()
                running[victim] = program(config, server.address)
                killed += 1
                due = time.monotonic() + options.kill_every
            time.sleep(POLL_S)
        took_s = time.monotonic() - begun
        spent_s = cpu_s(running[0].pid) - begin_s
        received_s = cpu_s(receiver.pid) - before
        for one in running:
            one.send_signal(signal.SIGTERM)
            one.wait()
        receiver.terminate()
        requests, different = map(int, receiver.stdout.readline().split())
        receiver.wait()
    print(f"{options.jobs} jobs, {requests} requests, {different} different ones, {killed} programs killed")
    if not options.kill_every:
        print(f"{left / took_s:.0f} jobs/s, {spent_s / left * 1e6:.0f} us of processor time a job in the program, "
              f"{received_s / options.jobs * 1e6:.0f} us in the receiver")
    return 0 if different == options.jobs else 1


if __name__ == "__main__":
    sys.exit(main())
