"""All limits of the gateway, each with its reason. The configurable ones are the fields of `Limits`."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core import OPERATION_BYTES_MAX, OPERATION_WORK_MAX

# Limits of the replicated state that the grammar checks as well.
from sockpqd.core import PORTION_MAX as PORTION_MAX
from sockpqd.core import SESSION_TTL_MS_MAX as SESSION_TTL_MS_MAX
from sockpqd.core import SESSION_TTL_MS_MIN as SESSION_TTL_MS_MIN

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# Bytes read from all clients in a turn; clients that have sent more are read in later turns. The loop would read each
# socket until it is empty, so a hundred clients sending at full speed would block it for a second. Only reads of at
# least the second size count; smaller ones show that the socket is empty.
READ_BYTES_PER_TURN = MIB
READ_COUNTED_BYTES = 64 * KIB
READ_ONCE_BYTES = 256 * KIB         # the most that the loop reads of a socket at once

# When little room is left in the memory account, clients further ahead than this are not read.
AHEAD_BYTES_MAX = 16 * KIB

# What the account adds to the bytes received, roughly as measured: per command queued in a transaction, and, once there
# are more than a few, per queue named by a blocked command, and per queue in the cycle of a connection beside its name.
COMMAND_BYTES = 384
WAITER_QUEUE_BYTES = 110
ROTATION_QUEUE_BYTES = 130
FEW_QUEUES = 16

# A declared body larger than this is not skipped when it is refused: the connection is closed instead.
SKIPPED_BYTES_MAX = 256 * MIB

# A log entry holds at most 16 MiB with everything around the body; a configured limit on bodies must stay below that.
DATA_BYTES_CEILING = 8 * MIB

# Chunks of a CLONE: small enough that none delays heartbeats.
CLONE_CHUNK_BYTES_MAX = 48 * KIB

# Commands of one connection proposed but not yet answered, while few connections have that many (Cluster.share). A
# pipelining client gains nothing from more, and each costs memory here and in the log.
COMMANDS_IN_FLIGHT_MAX = 4096

# Commands executed for all connections while the loop reads, and as many again at the end of a turn: a few milliseconds
# of work each, so that a flood of pipelined commands cannot delay heartbeats or other clients.
COMMANDS_PER_TURN_MAX = 1024

# Commands of one connection before the next gets its turn.
COMMANDS_PER_SLICE = 128

# A line longer than this is budgeted as more than one plain command: as one for so many bytes, in which there may be a
# dozen names or ids. So is a job of a PUTS.
LONG_LINE_BYTES = 256
LINE_BYTES_PER_COMMAND = 64

# The cost, in plain commands, of a line refused with a reason, as the reason is searched for among all keywords; and
# the number of empty lines that cost as much as one command.
REFUSED_LINE_COMMANDS = 32
EMPTY_LINES_PER_COMMAND = 8

# Jobs per GET .. COUNT, PUTS, DONE or LATER: what one log entry can do without delaying heartbeats
# (spec/state-machine 1.6). Fewer with REQ, so that the answer can be stored: 16 bytes each, within 64 KiB.
BATCH_JOBS_MAX = 10_000
NUMBERED_BATCH_JOBS_MAX = 4096
SESSIONS_KEPT_MAX = 1000        # sessions of one SESSION KEEP

# Data of one PUTS or one transaction, and the lines and data of one PUTS, held in memory until complete.
BATCH_DATA_BYTES_MAX = 16 * MIB
BATCH_BYTES_MAX = BATCH_DATA_BYTES_MAX + 2 * MIB

# Commands per transaction (spec/state-machine 9.3) and their total cost: together they are one operation.
TRANSACTION_COMMANDS_MAX = 1000
TRANSACTION_BYTES_MAX = OPERATION_BYTES_MAX - KIB
TRANSACTION_WORK_MAX = OPERATION_WORK_MAX - KIB

# Queue names per command: as many as one operation can look at. A line of the default length holds fewer.
QUEUES_MAX = 20_000

# Queues in the cycle of a connection (BY RR, BY PRIORITY); with more, it restarts with the latest ones.
ROTATION_QUEUES_MAX = 1000

# The cost, in plain commands, of computing how many grants a pulse has free.
PULSE_COMMANDS = 2

# Proposals of grants in flight, each for the clients waiting for one pulse. They do not take turns with clients'
# operations, which wait for all of them.
GRANT_PROPOSALS_MAX = 64

# The data of a pulse go with each of its grants; they are signals, not bodies.
PULSE_DATA_BYTES_MAX = 64 * KIB

# Items a single job can wait for (AFTER); the limit applies to each job of a PUTS.
AFTER_ITEMS_MAX = 100

# Job and attempt counts in settings: anything larger is a mistake; 0 means no limit.
SETTING_MAX = 2**31 - 1
WEIGHT_MAX = 1_000_000

# Queues that one PUT names.
SPREAD_QUEUES_MAX = 1000

# Places for jobs of one pool of workers.
WORKER_SLOTS_MAX = 2**31

# The shortest IDLE of a queue, about the interval at which the leader checks; and the number of queues checked at a
# time. Where there are many, a queue is deleted somewhat later than its IDLE says, never earlier.
IDLE_MS_MIN = 1000
IDLE_LOOK_S = 0.25
IDLE_LOOKS_MAX = 2000

# Deletions of such queues in flight. Each counts as the work of a portion of jobs. They do not take turns with clients'
# operations, which wait for all of them.
IDLE_DELETIONS_MAX = 1

# Queues with a rate that are handled at once (offered to waiters, if there are any) when their pulse has a grant again.
FED_QUEUES_MAX = 256

# With more claims than this a waiter for any queue asks the log, as searching for an unclaimed job would cost more.
CLAIMS_LOOKED_AT_MAX = 64
# Queues of a group that has opened again, for which waiters are sent before clients get their turn: half a millisecond.
# The next ones follow after so many times the time that it took, as a group may open without end.
QUEUES_OPENED_AT_ONCE, OPENED_RESTS = 256, 4
# Queues with only closed groups that are inspected for a client that begins to wait; beyond these the log decides,
# which counts the queues that it inspects.
CLOSED_LOOKED_AT_MAX = 64

# Wait lists from which waiters for many queues are removed before clients get their turn: two milliseconds of work.
LINES_LEFT_AT_ONCE = 4000
# Names of waiters whose time is up, and whose Gets are proposed before clients get their turn: a millisecond of work.
NAMES_SENT_AT_ONCE = 20_000

# Names in which waiters of GETBE look for something unfinished at once: a quarter of a millisecond of work. They rest
# then for so many times its length.
FINISHED_LOOKED_AT_MAX, FINISHED_RESTS = 1000, 4

# Clients that wait for the end of a job (AWAIT) and hear it before others get their turn: two milliseconds of work.
ENDS_TOLD_AT_ONCE = 100

# Wait lists joined by a blocked command that are budgeted as one plain command.
LINES_PER_COMMAND = 8

# Answers of one turn are joined up to this size before they are written.
OUTPUT_PIECE_BYTES = 256 * KIB

# A job with more data is not copied into its answer: the data are written as they are. Not less than
# OUTPUT_PIECE_BYTES, so that the answers are written right behind it.
LARGE_BODY_BYTES = OUTPUT_PIECE_BYTES

# While a node serves without its lease, an answer that needs the lease is retried after this time.
UNSURE_S = 0.005

# Events that a node remembers for subscribers that come back, and their lines. A subscriber with EVENT_BACKLOG_BYTES
# unread is disconnected when the next line is due. One that reads the history gets it in pieces: each inspects this
# many events, and waits until no more than this many bytes are unread.
EVENT_HISTORY_MAX = 100_000
EVENT_HISTORY_BYTES = 16 * MIB
EVENT_BACKLOG_BYTES = MIB
EVENT_PIECE_MAX = 1000
EVENT_PIECE_BYTES = 64 * KIB
NOTIFY_BYTES_MAX = MIB              # of the data of one NOTIFY
LISTENING_KNOWN_S = 0.5             # how long SUBSCRIBE MSG waits until the leader knows of it
CHANNELS_TOLD_MAX = 10_000         # names of channels that the nodes tell each other; with more they send all messages
EVENT_NAMES_MAX = 1000              # names of one SUBSCRIBE

# Events are delivered in slices of this many steps: each look-up and each subscriber of an event is one step, a write
# to a subscriber is several. While there is a backlog, slices grow, so that little time is lost between turns.
EVENT_SLICE_STEPS, EVENT_SLICE_STEPS_MAX = 1000, 1500
EVENT_WRITE_STEPS = 20

# Undelivered events and messages: at this number, or this many bytes of messages, NOTIFY and SUBSCRIBE wait until half
# of it is left; above the second limits all subscribers get a GAP instead.
EVENT_DUE_HIGH, EVENT_DUE_MAX = 1000, 100_000
EVENT_DUE_BYTES_HIGH, EVENT_DUE_BYTES_MAX = 4 * MIB, 32 * MIB

# Size of the pieces in which snapshots are streamed from disk to a client.
STREAM_PIECE_BYTES = 256 * KIB

# Lines of a listing formatted before other clients get their turn, and lines of all listings in one turn: a third of a
# millisecond of work, however many ask. A piece that inspects more than it lists counts as a full one.
LINES_PER_PIECE = 125
LINES_PER_TURN = 128

# Bytes of a shown job that are budgeted as one plain command: they are copied, and may be on the disk.
PEEKED_BYTES_PER_COMMAND = 4 * KIB

# The most data of ended jobs shown in one answer, unless a single job has more.
ENDED_BYTES_MAX = MIB

# One FIND: the jobs it shows, by default and at most, and the jobs it inspects before it returns a cursor. It works in
# slices, one per turn, of at most this many jobs or bytes (400 jobs took 0.4 ms); a shown job counts as FOUND_COST
# jobs, and each step, of which there are a few for every queue, as STEP_COST. At most FINDS_MAX searches run at a time
# on one node, and FINDS_OF_ONE_MAX of one user. After each slice they pause for FIND_REST_SLICES times its length, so
# that most answers to other clients are not delayed.
FOUND_DEFAULT, FOUND_MAX = 100, 1000
FIND_JOBS_MAX, FIND_BYTES_MAX = 100_000, 16 * MIB
FIND_SLICE, FIND_SLICE_BYTES, FIND_SLICE_NAMES = 250, 64 * KIB, 500
FOUND_COST, STEP_COST = 10, 2
FINDS_MAX, FINDS_OF_ONE_MAX = 8, 4
FIND_REST_S, FIND_REST_SLICES, FIND_REST_MAX_S = 0.001, 4, 0.004

# Reasons for the ends of jobs that are written to the node's log per second, for all clients and for one: 25 KB.
REASONS_LOGGED_MAX, REASONS_OF_ONE_LOGGED_MAX = 250, 50

# Priorities of a queue, or tickets of a pulse, whose inspection is budgeted as one plain command.
LOOKED_PER_COMMAND = 64

# Snapshots made for clients concurrently: each costs a copy of the state on disk.
EXPORTS_MAX = 2
# And those that are on the disk until their clients have read them, or wait to be written.
EXPORTED_MAX = 6

# Feeds of copies in other regions on one node, each with the buffers of a connection and a share of the loop's time. A
# feed looks for new entries so often (more often costs the leader more, and copies are hundreds of milliseconds away),
# and says at least so often how far it is. One that has much to catch up sends pieces of so many entries, and rests for
# so many times as long as it took to make them.
FEEDS_MAX = 8
FEED_LOOK_S, FEED_MARK_S = 0.1, 0.25
FEED_PIECE_FRAMES, FEED_RESTS = 250, 4

# How long a snapshot for a copy is kept for the rest of a broken transfer.
FEED_SNAPSHOT_KEPT_S = 600.0

# After a final answer, input is read and dropped for this long, so that a TCP reset does not destroy the answer; longer
# while the client is still reading it.
LINGER_S = 1.0

# Session TTL when the client gives none: the 15 minutes of the original.
SESSION_TTL_MS_DEFAULT = 900_000

# A blocked command keeps its session alive with this many uses per TTL, so that one late use does no harm. An owner at
# the limit of sessions loses the least recently used ones, and sessions of blocked commands should not be among them.
# So at this interval we check how many were opened; if twice as many more would exhaust the limit, the session is used
# at once.
SESSION_USES_PER_TTL = 3
SESSION_LOOK_S = 10.0

# Rights per user, and the size of a user's key: HMAC-SHA256 gains nothing from more, and less could be guessed.
RIGHTS_MAX = 32
KEY_BYTES_MIN, KEY_BYTES_MAX = 16, 64

# Size of the random nonce in a challenge: large enough never to repeat.
NONCE_BYTES = 32

# Against guessing secrets: the delay before a failed AUTH is answered, the failures after which the connection is
# closed, and how many secrets are hashed concurrently, each within a memory limit.
AUTH_FAILURE_S = 1.0
AUTH_FAILURES_MAX = 3
SCRYPTS_MAX = 2
SCRYPT_BYTES_MAX = 256 * MIB

# Concurrent TLS handshakes, in addition to the connections, and their timeout: a fleet that reconnects after a failover
# finds room, and clients that open connections and say nothing lose them soon.
HANDSHAKES_MAX = 4096

# Memory of one of them, as measured. The memory account does not include it, so all handshakes together get at most
# half of what the account allows.
HANDSHAKE_BYTES = 64 * KIB
HANDSHAKE_S = 10.0

# How long a client in one of the extra places for administrators (beyond limits.connections_max) may take to start
# authenticating.
TRIAL_S = 2.0

# Hand-outs of a connection after which some are checked for having ended; and the memory that each takes.
HAND_OUTS_PER_LOOK = 64
HAND_OUT_BYTES = 112

# Refused clients that are drained for LINGER_S so that the answer reaches them; any more are just closed.
REFUSED_PLACES = 64

# Connections the kernel completes ahead of the gateway accepting them: a whole fleet reconnecting after a failover.
ACCEPT_BACKLOG = 4096


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[limits]` section. Sizes are bytes."""

    data_bytes_max: int = 8 * MIB           # one job's data
    line_bytes_max: int = 64 * KIB          # one command line including its line end
    snapshot_bytes_max: int = 4 * GIB       # largest CLONE
    connections_max: int = 10_000           # concurrent clients; file descriptors are the scarce resource
    sessions_per_owner_max: int = 10_000    # per user and address: a tenth of the total limit
    output_bytes_max: int = 64 * MIB        # unread answers of one connection; above it the connection is cut
    pipeline_bytes_max: int = 1 * MIB       # commands buffered behind a blocked one
    memory_mark: int = 0                    # memory in use above which PUT is refused; 0: 45% of what is available
    hot_bytes: int = 0                      # of waiting jobs in memory, those beyond are on the disk; 0: all in memory
    disk_free_bytes_min: int = 128 * MIB    # PUT is refused when the disk of data_dir has less free space
    pulses_max: int = 1000                  # including the pulses of queues
    connections_per_address_max: int = 0    # per remote address (not for this machine); 0: half of connections_max
    hello_timeout_s: int = 30               # until the first line (0 disables any of these timeouts)
    idle_timeout_s: int = 0                 # between two commands; never applies while one is blocked
    auth_timeout_s: int = 30                # where AUTH is required: from connecting to a successful AUTH
    command_timeout_s: int = 300            # from the first byte of a command to its last
    answer_timeout_s: int = 60              # a client that reads none of its answers for this long is cut
