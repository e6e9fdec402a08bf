"""All limits and sizes of core, with their units and the reason for each.

Every node of a cluster must have the same ones: they decide what an entry of the log does. Handlers and rules read them
as `limits.NAME`; the collections in core/store import those that are on their fastest paths by name.

A name ends with its unit: _MS milliseconds, _BYTES bytes, _BITS a shift; otherwise it counts what the name says. What
an operation costs is declared next to its handler, in the units of core/handlers/cost.py.
"""

from __future__ import annotations

# ---- What clients may ask for. The gateway refuses most of what is beyond; a handler takes the nearest allowed value.

DURATION_MS_MAX = 4_294_967_295_000         # of a lease, delay, TTL, period, KEEP, grace, pause: 2^32-1 s, 136 years
NUMBER_MAX = 1 << 62                # of all other numbers: a snapshot holds 63 bits, and counting on needs some room
PRIORITY_MIN, PRIORITY_MAX = -(1 << 63), (1 << 63) - 1
NAME_CHARS_MAX = 255                # of the names of queues, items and keys
GONE_MAX = 100_000                  # names of queues that are gone whose counters are kept until they are taken
DEDUP_MS_MIN, DEDUP_MS_MAX = 1000, 86_400_000   # for which a key is remembered: longer is a matter of the application
HEADERS_MAX, HEADERS_BYTES_MAX = 64, 16_384     # of one job, in all: what a mail or an HTTP request may have
HEADER_NAME_BYTES_MAX, HEADER_VALUE_BYTES_MAX = 64, 1024
COUNT_MAX = 10_000                  # jobs of one GET .. COUNT
RATE_MAX = 100_000                  # grants of a pulse in one period
PER_MS_MIN, PER_MS_MAX = 10, 86_400_000     # the length of a period, and the greatest pause and wait
BACKOFF_MS_MAX = 86_400_000         # after an attempt that failed: a job that is not tried for days is better buried
SESSION_TTL_MS_MIN = 1_000          # less would not survive an election
SESSION_TTL_MS_MAX = 86_400_000     # more would keep memory for clients that are gone

LEVELS_MAX = 16                     # of FAIR
LEVEL_S_MAX = 1 << 40               # a threshold of FAIR
CAP_MS_MAX = 86_400_000             # of one hand-out, as FAIR charges it
MULTIPLIER_MAX = 100                # by which the share of a level is smaller than the share of the level below
GROUP_RATE_MAX = 10_000             # hand-outs of a group in one period,
GROUP_PER_MS_MIN, GROUP_PER_MS_MAX = 100, 86_400_000        # and the length of that
GROUP_WEIGHT_MAX = 1000
GROUP_KEEP_MS_MAX = 86_400_000      # for which a group without jobs is remembered
PROGRESS_MAX = 100                  # per cent
RAN_MS_MAX = DURATION_MS_MAX        # what a worker may say it has run

# ---- How much the state may hold. The names of all queues with settings fit into a few entries; a change of a user
# copies the table of all users.

QUEUES_MAX = 100_000                # that have settings
SESSIONS_MAX = 100_000
BATCH_ANSWERS_MAX = 64 * 1024 * 1024    # estimated bytes of the answers to batches that an owner's sessions remember,
                                        # and enough for one with a window full of the largest
HOLD_MS_MIN, HOLD_MS_MAX = 1000, 86_400_000     # less would not survive an election; a batch is put within a day
HOLDS_MAX = 100_000                  # items that are held
USERS_MAX = 10_000
GROUPS_MAX = 100_000                # that have settings
WORKERS_MAX = 10_000
WORKERS_LEFT_MAX = 1000             # names without a worker for which an operator's last words are kept,
WORKER_LEFT_MS = 60_000             # for this long: the time of a restart
WORKER_SILENT_MS = 30_000           # a session unused for this long may lose the names of its workers to another one
TOPIC_BINDINGS_MAX = 10_000         # of one topic
BINDINGS_MAX = 100_000              # of all topics,
PATTERN_WORDS_MAX = 1_000_000       # in all of their patterns: each word takes up to some 130 bytes
SPREAD_JOBS_MAX = 10_000            # put into several queues by one command
SPREAD_MARKED_MAX = 5_000           # the same where jobs have options, or queues settings: twice the work
ROUTE_STEPS_MAX = 60_000            # words of the key times patterns of the topic, for one PUT to it,
ROUTE_STEPS_BATCH = 5 * ROUTE_STEPS_MAX     # and for all of a transaction, or of a part of a PUTS: some 60 ms
SHARED_BYTES_MIN = 32               # shorter bodies are not worth sharing in a snapshot
RETAINED_KEYS_MAX = 1_000_000       # of one queue; one more makes it forget the one that would expire first
ERROR_BYTES_MAX = 16 << 10           # of the text of one job: a long traceback, cut in the middle by its worker
ERRORS_BYTES = 64 << 20              # of the texts of a queue that has no ERRORBYTES
ERRORS_DROPPED_MAX = 1000            # texts beyond ERRORBYTES, besides two for each that came: an entry drops this many
REMEMBERED_KEYS_MAX = 10_000_000    # of all queues (PUT .. DEDUP), each some 300 bytes; one more is refused
REMEMBERED_OF_QUEUE = 1_000_000     # of a queue with settings that says no other number (DEDUPMAX),
REMEMBERED_OF_PLAIN = 10_000        # and of one without settings, which anybody may begin
MAP_BYTES_MAX = 64 << 10            # of the map of clusters,
MAP_VERSION_MAX = 1 << 53           # whose versions any language can hold
TICKETS_MAX = 1_000_000             # open ones of all pulses; one more gives up the oldest
REQUEST_WINDOW = 64                 # answers that a session remembers, by the newest request numbers

# ---- How large and how long one entry of the log may be, so that none keeps heartbeats and other clients waiting.

# No operation may cost more, or it is refused before it is proposed. The work (core/handlers/cost.py) takes some 15 ms,
# and 30 ms where the jobs have every rare attribute.
OPERATION_BYTES_MAX = (16 << 20) + (256 << 10)      # 16 MiB of data, and its description
OPERATION_WORK_MAX = 30_000

# An entry stops when it has spent this much, and the rest of its operations moves to the next one. Each byte handed out
# counts as one, and a unit of work that could not be foreseen as STEP. The last operation may exceed it; as a job has
# 8 MiB at most, an entry hands out 16 MiB at most.
SPENT_MAX = 8 << 20
STEP = 512
HANDED_BYTES_MAX = 2 * SPENT_MAX

# What becomes due in one entry; the leader proposes Ticks until nothing is left. Once groups are in use (FAIR) a step
# of a job is twice the work, and all kinds together are DUE_MAX at most.
DUE_MAX = 1000                      # leases and sessions that end
TTL_ENDS_MAX = 1000                 # jobs whose TTL ends
GRANTS_MAX = 10_000                 # grants of one Grant
GRANTED_QUEUES_MAX = 256            # queues that share a pulse, among which a Get of all queues chooses
PORTION_MAX = 1000                  # jobs that are activated, purged or kicked, groups that are offered
PORTION_BYTES_MAX = 1 << 20         # and the data of these jobs, or one: some nodes may have to read them from disk
LOOKED_BYTES_MAX = 512 << 10    # data of jobs that are shown (PEEK) and read from the disk in one turn
CLOSED_QUEUES_MAX = 256             # that a Get leaves out because all their groups are closed;
CLOSED_QUEUE_STEPS = 32             # each of which takes 20 µs
CLOSED_OF_ITEM_STEPS = 2            # the same for each of the other queues in which an item has jobs: 1.2 µs
GROUPS_RELISTED_MAX = 10_000        # of a queue with READY jobs, and jobs that run, whose order may still be changed
LOOKED_MAX = 10 * PORTION_MAX       # groups of which RESUME asks whether they are to be offered
UNBOUND_MAX = 10_000                # jobs that one CloseSession unbinds
RESORTED_JOBS_MAX = 2_000           # READY jobs of a queue whose order may still be changed
FORGOTTEN_KEYS_MAX = 1_000          # retained keys that expire, besides two for each that is added

# ---- A promoted copy goes on with numbers and places that its origin, of which it may lack a part, has not given out.

PROMOTED_BEYOND = 1 << 32           # at a million a second, for more than an hour
PROMOTED_BEYOND_MS = 10_000         # by which the origin's clock may have been ahead of the copy's

# ---- A grant is written within this time of its stamp, or never; a new leader relies on that (spec/pulse 2.2).

GRANT_WRITTEN_MS_MAX = 5_000

# ---- How exactly time is kept. What is due is looked for once in this many milliseconds (a power of two), never early.

LEASE_BITS = 4                      # 16 ms: ends of leases and sessions
DUE_BITS = 4                        # 16 ms: DELAYED jobs and TTLs
RETAINED_KEY_BITS = 10              # about a second: forgetting a key only frees memory
SESSION_SLOT_BITS = 10              # about a second: sessions that end later than in the current span are not sorted

# The seq of a new job begins at the time of its entry shifted by this: a thousand jobs in a millisecond. If there are
# more for a moment, seqs run ahead of the clock by some milliseconds. For two centuries they stay below 2^53, so any
# language can hold them; with a clock beyond SEQ_MAX they only count on.
SEQ_BITS = 10
SEQ_MAX = 1 << 62

# ---- Shapes of the collections, as measured.

BLOCK_JOBS_MAX = 1000               # of a sorted list: moving this many in memory takes less than a µs
UNSPLIT_JOBS_MAX = 500              # a queue with fewer READY jobs is one plain list
SCANNED_RUNS_MAX = 100              # priorities scanned for the oldest job; with more there is an index
PAGE_BYTES_MAX = 256 << 10          # data of a page of jobs that is not in memory, if it has more than one,
PAGE_BYTES_MIN = 16 << 10           # and with how much data few jobs are worth one
BODY_BYTES_MIN = 4096               # a body of so much may be outside memory without its job
PAGES_AHEAD = 4                     # behind the front of a queue, that will be needed soon
SHARED_EXTRAS_MAX = 16_384           # kinds of jobs besides plain ones, such as groups, of which each has one record
PAGE_HANDLE_BYTES = 250             # of a page in memory: what its queue and the store know of it
INDEXED_BYTES = 8                   # of a job in a page that can be found by its seq
JOB_BYTES = 190                     # of a waiting job in memory besides its data: record, numbers, place in a list
STALE_OWNER_ENTRIES_MAX = 16        # of ended sessions in the heap of an owner, beyond as many as it has sessions
ITEM_NAMES_TRIED = 100              # that clients may have taken already, before the counter jumps far ahead

# ---- Snapshots: pieces small enough to be written and read one by one.

CHUNK_BYTES = 256 << 10             # a chunk is yielded at this size
CHUNK_BYTES_MAX = 1 << 20           # a larger one, caused by a large job, is cut
FRAME_DATA_BYTES = 128 << 10        # a frame is closed when its jobs have this much data,
FRAME_JOBS_MAX = 1000               # or this many jobs,
FRAME_ROWS_MAX = 100                # or this many users or settings of queues,
FRAME_SESSION_PARTS_MAX = 1000      # or this many sessions, requests and bound jobs together
COUNTER_MAX = (1 << 63) - 1         # of any counter in a snapshot

# ---- Records of ended jobs. A block is small enough to be read for one of them.

RECORD_BLOCK_MAX = 128              # records in a block, or
RECORD_BLOCK_BYTES = 64 << 10       # until their data have this size; it may be one larger record
RECORD_BYTES = 400                  # about what a record takes in memory besides its data
RECORDS_HOT_BYTES = 16 << 20        # in memory: beyond that blocks leave it that are not full, the first begun first
RECORDS_CROWDED_BYTES = 32 << 20    # in memory: beyond that blocks leave it before the next entry
RECORD_WORK = 120                   # to read a block for one of them, in units of handlers/cost.py
RECORD_SPAN_MS = 2**32 - 1          # from the first end in a block to the last one
RECORD_BITS = 10                    # about a second: a record that is over is shown no more in any case
FIND_RECORDS = 12                   # that a place of FIND names: it is behind the first of them that is still there
RECORDS_REMOVED = 1000              # of those that are over, by one entry
RECORDS_EVICTED = 1000              # that one entry ends beyond RETAINEDBYTES, besides two for each it adds
RECORD_QUEUES_MAX = 1000            # of which one entry ends the records whose time has passed
RETAIN_MAX = 100_000                # RETAINMAX,
RETAIN_BYTES = 64 << 20             # RETAINBYTES and
RETAINED_BYTES = 1 << 30            # RETAINEDBYTES, unless set otherwise
