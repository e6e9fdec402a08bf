"""Every limit of the gateway in one place, each with its reason. The configurable ones are the fields of `Limits`."""

from __future__ import annotations

from msgspec import Struct

from core import OPERATION_BYTES_MAX, OPERATION_WORK_MAX

# Limits of the replicated state that the grammar checks as well.
from core import PORTION_MAX as PORTION_MAX
from core import SESSION_TTL_MS_MAX as SESSION_TTL_MS_MAX
from core import SESSION_TTL_MS_MIN as SESSION_TTL_MS_MIN

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# What is held for all clients together (memory_account.py): of the mark of memory, and at least. When so much of it is
# in use, nobody is read who is further ahead than this, and only bodies that are here at once are taken.
HELD_SHARE_PERCENT = 25
HELD_BYTES_MIN = 64 * MIB
HELD_HIGH_PERCENT = 75
AHEAD_BYTES_MAX = 16 * KIB

# What the account counts beside bytes that came, about as measured: for a collected command, and for each queue that a
# blocked command names when they are more than a few.
COMMAND_BYTES = 256
WAITER_QUEUE_BYTES = 110
FEW_QUEUES = 16

# A declared block above this is not read to its end before it is refused: the connection is closed.
SKIPPED_BYTES_MAX = 256 * MIB

# A log entry holds at most 16 MiB with everything around the body; a configured limit on bodies must stay below that.
DATA_BYTES_CEILING = 8 * MIB

# Chunks of a CLONE: small enough that one never keeps heartbeats waiting.
CLONE_CHUNK_BYTES_MAX = 48 * KIB

# Commands of one connection that are proposed and not yet answered, when few have as many (Cluster.share). A pipelining
# client gains nothing from more, and each one costs memory here and in the log.
COMMANDS_IN_FLIGHT_MAX = 4096

# Commands taken from all connections while the loop reads, and as many again at the end of a turn: some milliseconds
# of work each, so that a flood of pipelined commands cannot make heartbeats or other clients late.
COMMANDS_PER_TURN_MAX = 1024

# Commands of one connection before the next one has its turn.
COMMANDS_PER_SLICE = 128

# A line is as much work as a plain command for each so many bytes.
LONG_LINE_BYTES = 256

# Jobs of one GET .. COUNT, PUTS, DONE or LATER: what one entry of the log can do without keeping heartbeats waiting
# (spec/state-machine 1.6). With REQ it is fewer, so that the answer can be stored: 16 bytes of 64 KiB for each.
BATCH_JOBS_MAX = 10_000
NUMBERED_BATCH_JOBS_MAX = 4096

# The lines and data of one PUTS, kept in memory until they are complete.
BATCH_BYTES_MAX = OPERATION_BYTES_MAX

# Commands of one transaction (spec/state-machine 9.3), and what they may cost together: they are one operation.
TRANSACTION_COMMANDS_MAX = 1000
TRANSACTION_BYTES_MAX = OPERATION_BYTES_MAX - KIB
TRANSACTION_WORK_MAX = OPERATION_WORK_MAX - KIB

# Names of queues in one command: what one operation may look at. Lines of the default length have fewer.
QUEUES_MAX = 20_000

# Queues among which a connection remembers whose turn it is (BY PRIORITY): with more it begins anew.
ROTATION_QUEUES_MAX = 1000

# Items that one job waits for (AFTER): all of a PUTS may wait for so many each.
AFTER_ITEMS_MAX = 100

# Numbers of jobs and attempts in settings; a larger one is a mistake, 0 means no limit.
SETTING_MAX = 2**31 - 1
WEIGHT_MAX = 1_000_000

# What the kernel does not take at once of one connection's answers before the gateway stops executing its commands, and
# the account is told. The kernel's buffer keeps the line busy; with nothing here, nothing is held that is not counted.
OUTPUT_HIGH_WATER_BYTES = 0

# Answers of one turn are joined up to this size and then written.
OUTPUT_PIECE_BYTES = 256 * KIB

# Pieces in which snapshots are streamed from the disk to a client.
STREAM_PIECE_BYTES = 256 * KIB

# Lines of a list that are formatted before other clients get their turn.
LINES_PER_PIECE = 1000

# Snapshots made for clients at the same time: each costs a copy of the state on disk.
EXPORTS_MAX = 2

# After an answer that closes, input is read and dropped for so long, so that a TCP reset does not destroy the answer,
# or longer as long as the client takes what it has not got yet.
LINGER_S = 1.0

# How long a session lives without use when its client does not say: the original's 15 minutes.
SESSION_TTL_MS_DEFAULT = 900_000

# A command that waits in a session uses it so many times per TTL: one use may be late without harm. An owner of as many
# sessions as it may have loses the longest unused ones, which are not to be those. So it is looked at this interval how
# many were opened meanwhile; if that many again, twice, would leave no free place, the session is used at once.
SESSION_USES_PER_TTL = 3
SESSION_LOOK_S = 10.0

# Clients whose host vanished are gone within 30 s: idle ones are asked by TCP, and one that owes an acknowledgement, of
# a job sent to it perhaps, may be silent for so long until the next sweep. (TCP_USER_TIMEOUT would also end those that
# live and only do not read.)
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_PROBES = 3
SILENT_S = 20.0

# Rights of one user, and bytes of the key of one: HMAC-SHA256 has no use for more, and less could be guessed.
RIGHTS_MAX = 32
KEY_BYTES_MIN, KEY_BYTES_MAX = 16, 64

# What a challenge asks with: never the same twice.
NONCE_BYTES = 32

# Guessing a secret: a refused AUTH is answered so late, so many end the connection, and only so many secrets are
# hashed at once, each in so much memory at most.
AUTH_FAILURE_S = 1.0
AUTH_FAILURES_MAX = 3
SCRYPTS_MAX = 2
SCRYPT_BYTES_MAX = 256 * MIB

# Connections are looked at so often for the time limits, more often only when a limit is very short: 10,000 cost 15 ms.
SWEEP_S, SWEEP_S_MIN = 5.0, 0.5

# Connections looked at before others get their turn.
SWEEP_PIECE = 500

# TLS handshakes at the same time, beside the connections, and how long one may take: a fleet that comes back after a
# failover finds room, and whoever only opens connections loses them soon.
HANDSHAKES_MAX = 4096
HANDSHAKE_S = 10.0

# Places beyond limits.connections_max, for this machine and for administrators, who have so long to begin to say who
# they are; and how many of one address may be asked that at a time.
FURTHER_PLACES = 16
TRIAL_S = 2.0
TRIALS_PER_ADDRESS = 2

# Clients without a place that are read to their end for LINGER_S, so that they get their answer; more are just closed.
REFUSED_PLACES = 64

# Connections accepted before others get their turn, and the pause when there are no file descriptors for more.
ACCEPTS_PER_ROUND = 32
EXHAUSTED_S = 0.5

# Connections the kernel completes before the gateway accepts them: a whole fleet reconnecting after a failover.
ACCEPT_BACKLOG = 4096


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[limits]` section. Sizes are bytes."""

    data_bytes_max: int = 8 * MIB           # one job's data
    line_bytes_max: int = 64 * KIB          # one command line with its line end
    snapshot_bytes_max: int = 4 * GIB       # what CLONE takes
    connections_max: int = 10_000           # clients at once; file descriptors are the scarce thing
    sessions_per_owner_max: int = 10_000    # of one user at one address: a tenth of all that there may be
    output_bytes_max: int = 64 * MIB        # unread answers of one connection: a slower reader is cut
    pipeline_bytes_max: int = 1 * MIB       # commands kept behind a blocked one
    memory_mark_bytes: int = 0              # memory in use above which PUT is refused; 0: 45% of what there is
    disk_free_bytes_min: int = 128 * MIB    # PUT is refused when the disk of data_dir has less free
    connections_per_address_max: int = 0    # of them from one address but this machine's; 0: half of connections_max
    hello_timeout_s: int = 30               # until the first line (0: for ever, as for the others)
    idle_timeout_s: int = 0                 # between two commands; never while one is blocked
    auth_timeout_s: int = 30                # where AUTH is required: from the connection to the AUTH that succeeds
    command_timeout_s: int = 300            # from the first byte of a command to its last
    answer_timeout_s: int = 60              # a client that takes nothing of its answers for so long is cut
