"""Fixed limits of the door, each with its reason; the others are settings (settings.py, `[limits]`)."""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20

# The body of a request. A message, or a batch, has 1 MiB at most; where every character needs an escape, JSON and forms
# take three bytes for each.
BODY_BYTES_MAX = 4 * MIB

# Bodies of this size are verified and decoded one at a time, with a turn of the loop between two of them: that
# takes up to 50 ms each, and small requests would otherwise wait for all of them.
LARGE_BYTES = 128 * KIB

# A message of 1 MiB takes 5 ms. After one that takes more than UNUSUAL_S the next large one waits for REST times as
# long, so that a flood of what is costly to decode takes a quarter of the processor at most.
UNUSUAL_S = 0.015
REST = 3

# The first line has the parameters of a presigned URL, or of a whole request in the Query protocol; AWS takes 16 KiB.
LINE_BYTES_MAX = 16 * KIB
FIELD_BYTES_MAX = 8 * KIB
HEADERS_MAX = 64

# After an answer to a request whose body was not read, its rest is read and dropped for this long: a client that is
# still sending would otherwise lose the answer.
LINGER_S = 2.0

BACKLOG = 1024              # connections that the kernel keeps until they are accepted

# Handshakes of TLS take place before a client can be asked for anything.
HANDSHAKE_S = 10.0

# How often connections are checked for timeouts, and files for changes.
SWEEP_S = 1.0
SWEEP_PIECE = 500               # connections that are checked before others have their turn

# The kernel's send buffer for one client, as nobody counts it; it allocates twice as much.
SEND_BUFFER_BYTES = 64 * KIB

# A host that has vanished is noticed after 25 s.
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 10, 5, 3

# Refused requests are logged together, once in this time, as anybody could fill the log with them.
REFUSALS_LOGGED_S = 10.0
