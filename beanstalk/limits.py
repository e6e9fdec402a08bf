"""Limits of beanstalkd's protocol, as its release 1.13 has them."""

from __future__ import annotations

LINE_BYTES_MAX = 224                # of a command, with CR LF: the longest one, pause-tube, at its limits
NAME_BYTES_MAX = 200                # of a tube
BODY_BYTES_MAX = 65_535             # of a job, unless configured otherwise (beanstalkd -z)
U32_MAX = (1 << 32) - 1             # of priorities, delays, times to run, and lengths
U64_MAX = (1 << 64) - 1             # of ids
WAIT_S_MAX = (1 << 31) - 1          # of reserve-with-timeout
TTR_S_MIN = 1                       # a shorter time to run becomes this
MARGIN_S = 1.0                      # this long before the end of a reservation a reserve answers DEADLINE_SOON

BACKLOG_BYTES_MAX = 256 << 10       # unexecuted input of one connection, besides the body that is arriving
OUTPUT_BYTES_PIECE = 64 << 10       # of answers, before they are sent although more commands are there
COMMANDS_PER_TURN = 64              # of one connection, before others have their turn
PER_PIECE = 250                     # names or connections that one piece of a long answer looks at
WATCHED_MAX = 1000                  # tubes of one connection; there memory is the limit
FORGET_S = 60.0                     # a reservation is remembered this long after its time, as it may end late

# What a connection holds besides the bytes it was sent, roughly as measured; a few of each are not counted.
FEW = 16
WATCHED_BYTES = 350                 # a watched tube, with a reserve that waits for it
RESERVATION_BYTES = 400
TOLD_NAME_BYTES = 100               # a tube in a long answer that is being made
COUNTED_BYTES_MIN = 4 << 10         # a body that is on its way counts from this size on
BODY_BYTES_PER_COMMAND = 4 << 10   # this many bytes of a job that is peeked at cost as much as a command
NAMES_PER_COMMAND = 16              # this many tubes that a reserve watches cost as much as a command
TUBES_LEFT_AT_ONCE = 250           # of a connection that has ended, before others have their turn
READ_MUCH_BYTES = 64 << 10         # after a read of this many bytes others are read first,
READ_COMMANDS = 256                # and the next one costs as much as this many commands
