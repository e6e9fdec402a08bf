"""A receiver of push: verifies signatures by Standard Webhooks, and does each job once. Standard library only.

    RECEIVER_SECRET=whsec_.. python receiver.py 8000
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sys
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

SECRETS = [base64.b64decode(one.removeprefix("whsec_")) for one in os.environ["RECEIVER_SECRET"].split()]
TOLERANCE_S = 300           # an older signature may be a repetition by somebody who has overheard it
BODY_BYTES_MAX = 8 << 20
KNOWN_MAX = 100_000         # ids of jobs that were done; a real program keeps them in its database, with its work

known: OrderedDict[str, None] = OrderedDict()
lock = Lock()


def is_genuine(headers: dict[str, str], body: bytes) -> bool:
    """Return whether a holder of one of the secrets has signed this a short time ago."""
    message, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        return False
    signed = f"{message}.{timestamp}.".encode() + body
    given = [one.removeprefix("v1,") for one in headers.get("webhook-signature", "").split() if one.startswith("v1,")]
    return any(
        hmac.compare_digest(base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)), one.encode())
        for secret in SECRETS for one in given
    )


def work(headers: dict[str, str], body: bytes) -> None:
    """Do the job: here, print it. If this raises, the job is sent again."""
    print("job", headers["webhook-id"], "of", headers.get("sockpq-queue"), body.decode("utf-8", "replace"), flush=True)


class Receiver(BaseHTTPRequestHandler):
    """Answers 200 once the job is done, even if it was done before."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        """Verify the signature, do the job unless it was done before, and answer 200; 401 for an invalid signature."""
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            self.reply(413)
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_genuine(headers, body):
            self.reply(401)
            return
        message = headers["webhook-id"]
        with lock:                          # one job at a time, so that a repetition waits for the first
            if message not in known:
                work(headers, body)
                known[message] = None
                if len(known) > KNOWN_MAX:
                    known.popitem(last=False)
        self.reply(200)

    def reply(self, status: int) -> None:
        """Answer without a body."""
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing for each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Receiver)
    print("listening on", server.server_address[1], flush=True)
    server.serve_forever()
