"""The limits and tuning values of a node, with their units and reasons.

They are read as `limits.NAME` when they are used, so a test can change one here. Values that make sense only next to
the algorithm that uses them stay in its file; what an operator can set is in settings.py.
"""

from __future__ import annotations

# ---- Proposals: how operations become log entries

# Bytes of memory for everything proposed and not yet applied, over all clients. Above it no client is read; reading
# resumes at half of it. Long before that each client is held to its share; this bound is for very many clients, each
# with a large share.
BACKLOG_BYTES_MAX = 64 << 20
ENTRY_OPERATIONS_MAX = 512      # operations in an entry: more make others wait longer, fewer lower the throughput
ENTRY_BYTES_MAX = 512 << 10     # an entry is closed at this size; a larger operation gets an entry of its own
WHOLE_BYTES_MAX = 512 << 10     # a client's operation above this size goes into the log in fragments
FRAGMENT_BYTES = 256 << 10      # of this size, one in each entry: others wait for one of them instead of megabytes
FRAGMENT_S = 0.02               # larger in proportion where they take longer: 8 MiB are there after some 0.7 s
MIRROR_PORTION_BYTES = 256 << 10    # of the origin's entries that a replica takes in one of its own
ENTRY_WORK_MAX = 16_000         # work in an entry, in names (core/handlers/cost.py): about 10 ms

# The same while a client that has one command at a time waits for an entry among others that take turns. It is the work
# of as many plain operations as an entry has at most, so these lose nothing, and expensive ones keep nobody waiting.
AWAITED_WORK_MAX = 4096
ENTRIES_IN_FLIGHT_MAX = 1       # entries proposed and not applied; 2 made entries smaller and a PUT 25% more expensive
OVERLAP_OPERATIONS_MIN = 200    # but one more if this one and the next are so large, and leader/pipelining.py agrees:
SLOW_ANSWERS_S = 0.0015         # the leader waits this long for disks and followers
PIPELINING_S = 1.0              # how long a measurement holds
WORK_HELD_BYTES = 48            # memory counted for a unit of work: a name, or part of an operation and its outcome
HELD_PER_BYTE_MAX = 8           # at most this much for each encoded byte: what is only asked for takes no memory
PLAIN_WORK = 8                  # work of a plain PUT, DONE or LATER,
PLAIN_HELD_BYTES = WORK_HELD_BYTES * PLAIN_WORK     # and the memory counted for it besides its bytes
OUTCOME_S = 3.0                 # an entry without an answer for this long has an unknown outcome (spec/cluster 3.1)
OUTCOME_AFTER_LOSS_S = 1.0      # the same once this node has lost leadership or its lease

# ---- Commit delay: how long the next entry waits for clients that are about to come back

COMMIT_DELAY_SHARE = 0.25       # of the time the last entry took from its proposal until it was applied
COMMIT_DELAY_S_MAX = 0.0005
COMMIT_DELAY_RESTS_MAX = 63     # most entries proposed without a delay after delays that brought nothing

# ---- Client queues: fairness among clients

CLIENT_QUANTUM_BYTES = 8192     # one turn of a client: 128 plain operations
CLIENT_WORK_BYTES = 8           # bytes charged for a unit of work: a plain operation costs the same by both measures
QUEUED_OPERATIONS_MAX = 16_384  # operations in all queues, roughly: a quarter of a second of small ones
QUEUED_BYTES_MAX = 16 << 20     # memory of all that is queued, roughly: above it each client is held to its share
QUEUED_PER_CHARGE_MAX = HELD_PER_BYTE_MAX + 1    # memory for each byte that is charged, at most
CLIENT_WAIT_S_MAX = 1.0         # a client without a turn for this long is answered that the server is busy
CLIENTS_LOOK_S = 0.1            # between two checks for such clients

# ---- Rests: small operations come between large ones

# An operation of more work than one turn is large. A leader that took this long to execute an entry with one proposes
# no other for this many times as long, while others have sent small ones in the last second. The followers execute it
# in that time as well, and most commands of the others are not delayed by it.
LARGE_WORK = CLIENT_QUANTUM_BYTES // CLIENT_WORK_BYTES
REST_FROM_S = 0.003
REST_FACTOR = 3
SMALL_SEEN_S = 1.0

# ---- Calls and commands that a node forwards to the leader

# A forwarded call, or its outcome: a body of DATA_BYTES_CEILING with room to spare, and half of what a message may be.
# Anything larger is refused by the sender.
CALL_BYTES_MAX = 17 << 20
CALLS_UNSENT_BYTES_MAX = 64 << 20    # of them on their way to one node: with more, no other one begins
ANSWER_BYTES_MAX = 1 << 20      # to a command that the leader executes for another node, for a page that shows a line

# ---- The node's loop

FORWARDED_COMMAND_S = 9.0       # for the answer to a forwarded command: a page waits no longer
FORWARDED_COMMANDS_MAX = 64     # of them at a time
TICK_S = 0.01                   # between turns when nothing happens, unless the next one is known to be later (idle.py)
HOUSEKEEPING_S = 0.005          # what need not be done in every turn is done at most this often
LEADING_S = 0.04                # it may come so much later in a turn with proposals or answers of a leader in order,
FOLLOWING_S = 0.1               # and in one in which a follower heard its leader in order
APPLYING_S = 0.05               # a follower's turn applies entries for this long, then hears its leader and its clients
POSTPONED_ENTRIES_MAX = 16      # a follower applies this many committed entries together, as long as others follow them
POSTPONED_BYTES_MAX = 256       # and each has this many bytes on average: one or two commands
INFO_S = 0.25                   # a node describes itself to the others this often
NOTICES_BYTES_MAX = 4 << 20     # with this much unsent to a peer its messages of NOTIFY are dropped
CHANNELS_REMEMBERED = 10_000    # channels whose listeners are known
RECORDED_S = 60.0               # events are recorded for this long after the last subscription to their type
POLL_S = 0.02                   # how often a coroutine looks whether what it waits for has happened

# ---- Leadership and membership

CLOCK_AGE_S_MAX = 2.0           # older reports of a wall clock do not count: the clock may have been set since
STEER_S = 0.25                  # how often replicated time is compared with the wall clocks
HAND_OVER_S = 5.0               # OFFLINE and an orderly stop wait at most this long for a successor
HAND_OVER_RETRY_S = 0.2
PREFERENCE_REST_S = 60.0        # a leader leads so long at least before it hands over to a preferred node
PREFERENCE_LOOK_S = 1.0         # and then looks for one this often
PREFERENCE_LAG_MAX = 1000       # entries that a preferred node may lack when leadership begins to move
PREFERENCE_SYNC_US_MIN = 1000   # a disk that syncs within this is not slow, whatever others take
LOSS_S = 600.0                  # a node that lost a leadership is not preferred for this long; each time twice as long,
LOSS_S_MAX = 86_400.0           # up to this
# A leader's disk lags when two syncs, the second of which goes on, took this share of the shortest election timeout (a
# leader that has nothing durable for all of it falls silent):
LAGGING_SHARE = 3 / 4
LAGGING_SYNC_SHARE = 1 / 6      # and the second one this share
NO_ROOM_KNOWN_S = 0.1           # a leader without room hands over when the others have had this time to report the same
DISK_REST_S = 10.0              # a leader that nobody relieved of its bad disk waits this long before it asks again
TRANSFER_S = 3.0                # a transfer that takes longer is abandoned, because no node serves meanwhile
REMOVAL_KNOWN_S = 5.0           # how long a removal waits until a majority of the other members has applied it
FAREWELL_S = 3.0                # a removed node still hears the commit index for this long
# When the leader's connection ends, the nodes that may succeed it try one after another, in this share of the shortest
# election timeout each: far more than a round of votes takes, so that they do not compete.
EARLY_ELECTION_STEP = 0.1
# For how long a follower that answered its leader elects nobody else, as shares of the shortest election timeout:
PROMISE_SHARE_MIN = 0.1         # at least, as everyone waits that long after the leader's death,
PROMISE_FACTOR = 1.5            # and this many times what acknowledgements took at most
PROMISE_WINDOW_S = 5.0          # in the present and the last such window;
PROMISE_FALL = 0.7              # it falls when much less would do
LEASE_SHARE = 0.9               # of the promise: what the leader counts on, as clocks run at rates that differ
# A voter that was started again neither votes nor counts before enough others have greeted it, or this time has passed.
REENTRY_S = 3.0

# ---- Replication

# A batch of pysyncobj's. Its own path for larger entries is broken (hazard H11d), so this lies above the largest entry:
# one operation of OPERATION_BYTES_MAX and the hand-out that must share its entry.
BATCH_BYTES_MAX = 17 << 20
APPEND_BYTES = 1 << 20          # entries in one Append message; the rest follows in others, which keeps turns short
CHOKE_BYTES = 8 << 20           # with this much unsent, stop sending entries to a peer,
UNCHOKE_BYTES = 1 << 20         # and resume at this
CROWDED_BYTES = 64 << 10        # with this much unsent, pysyncobj's heartbeats would wait behind it
SNAPSHOT_CHUNK_BYTES = 256 << 10
SNAPSHOT_WINDOW_BYTES = 2 << 20     # unsent bytes of a snapshot in the connection's buffer
SNAPSHOT_ANSWER_S = 10.0        # a snapshot sent completely and not answered for this long is sent again
SMALLER_FACTOR = 2              # for a peer without room one that is smaller by this factor is written
SNAPSHOT_REFUSED_S = 2.0        # pause after a peer could not use our snapshot; a new one is written meanwhile

# ---- Comparison of replicas

CHECKPOINTS_KEPT = 64           # nodes that are further apart than this compare later
BACKGROUND_HASH_BYTES = 256 << 10   # from this size on, handing a hash to a thread is cheaper than waiting for it
HASH_BACKLOG_BYTES_MAX = 32 << 20   # memory of entries that wait for the thread; beyond it the loop waits

# ---- Journal

SEGMENT_BYTES = 32 << 20
# Shares of a segment: what is reserved for Raft itself (2 MiB); with less than the second left (8 MiB) nothing of
# clients is logged; with less than the third (24 MiB) no jobs are accepted.
JOURNAL_RESERVE, JOURNAL_EXHAUSTED, JOURNAL_SCARCE = 1 / 16, 1 / 4, 3 / 4
BACKGROUND_SYNC_BYTES = 256 << 10   # from this size on, a sync is worth a thread, on a disk of any speed
SLOW_BACKGROUND_SYNC_BYTES = 24 << 10   # and from this one where syncs take
SLOW_SYNC_S = 0.001             # this long on average: entries of many commands, as others follow them at once;
# to hand a small frame to a thread costs two wake-ups, which the loop would rather wait for than for a disk that needs
SLUGGISH_SYNC_S = 0.005         # this long,
BRISK_SYNC_S = 0.003            # until it needs less than this again
SYNC_COUNTED_S_MAX = 0.02       # a sync counts for no more than this in the average
STALLED_SYNC_S = 0.1            # after one that took this long the loop does not wait for the next
UNSYNCED_BYTES_MAX = 8 << 20    # with these to write the loop waits for the disk
COMMIT_INDEX_WAITS_S = 0.1     # a new commit index waits this long for entries to be synced with
READ_AHEAD_BYTES = 256 << 10
# A synced frame of this size is dropped from the page cache: large frames one after another would take new pages for
# ever, and touching a page for the first time costs a virtual machine several times as much as a warm one.
FORGOTTEN_BYTES = 1 << 20
LOG_CACHE_BYTES = 16 << 20      # the newest entries in memory
FEED_SLICE_BYTES = 1 << 20      # entries read at once for a copy in another region
FEED_INDEXES = 8                # of segments that only copies need: one for each feed, as feeds do not keep in step
FEED_INDEX_FRAMES = 256         # after this many frames of such a segment, its reader
FEED_INDEX_REST_S = 0.001       # lets others run for this long: about half of the time
FEED_ROOM_SEGMENTS = 4          # with less room than this beyond the watermark of the disk, nothing is kept for copies
LOG_SLICE_BYTES_MAX = 40 << 20  # a slice keeps what it has read: pysyncobj walks over it and then takes what it wants

# ---- Snapshots and compaction

COMPACTION_BYTES_MIN = 64 << 20     # the journal is cut when it is larger than this ...
COMPACTION_FACTOR = 2           # ... and than this many times the last snapshot,
COMPACTION_ENTRIES = 200_000    # or when it has this many entries, however small: each costs a start about 20 µs
COMPACTION_REST_S = 10.0        # at most one snapshot in this time, in which each node has its own place,
COMPACTION_BYTES_MAX = 1 << 30  # unless the journal is larger than this, or there is no room
SNAPSHOTS_KEPT = 2              # the journal reaches back to the older one
SCRUB_PAUSE_S = 6 * 3600.0      # between two readings of all files, which look for damage,
SCRUB_BYTES_PER_S = 4 << 20     # and how fast they are
DAMAGED_KEPT = 2                # folders with damaged files that a node has set aside; older ones are removed
REJOIN_S = 30.0                 # a node that set its files aside waits this long for a leader before it gives up
SNAPSHOT_RETRY_S = 10.0         # pause after a snapshot could not be written, for example on a full disk
# A snapshot is synced in portions: the journal's own sync waits for the current portion, and one large sync at the
# end would delay it for seconds.
SNAPSHOT_SYNC_BYTES = 1 << 20

# ---- Jobs outside memory

PAGING_S = 0.002                # between two turns, while too many jobs are in memory
PAGE_FILES_MAX = 256            # of 256 MiB, all of them open; beyond that jobs stay in memory

# ---- Full disks

BALLAST_STEP_BYTES = 16 << 20   # the ballast grows by this much at a time, so that no turn takes long,
BALLAST_BYTES_MAX = 4 << 30     # up to this
# Kept for the state that a leader sends which has got rid of what fills this disk: several times what such a state has
# (STATE_FOR_ENTRIES_BYTES), and little next to a segment of the journal.
RESERVE_BYTES = 4 << 20
# A follower for whose leader's state there was no room for this long deletes its own, if the others have all of it,
NO_ROOM_FOR_STATE_S = 45.0
NO_ROOM_KNOWN_FOR_S = 120.0     # unless this much time passed between two attempts
RECEIVING_S = 2.0               # an incoming snapshot of which nothing has come for this long is not waited for
ROOM_LOOK_S = 1.0               # how often the room is looked at: the ballast grows, or what can go is given up
ROOM_REPORT_S = 60.0            # and how often the log says, while it is short, who holds it
STATE_FOR_ENTRIES_S = 10.0      # a follower without room that applies nothing for this long is sent the state,
STATE_FOR_ENTRIES_BYTES = 1 << 20   # if that has no more than this, or no more than the entries it lacks,
STATE_AGAIN_S = 30.0            # and again after this long;
STATE_ANYWAY_S = 300.0          # after this long a state of any size, three times; then after twice as long each time
NO_ROOM_RETRY_S = 1.0           # how often a node that could not write a turn's changes tries again

# ---- Connections between nodes

PIECE_BYTES = 128 << 10         # larger messages travel in pieces of this size
MESSAGE_BYTES_MAX = 36 << 20    # a batch of pysyncobj's, which one more of the largest entries may close
LARGE_MESSAGE_BYTES = 64 << 10  # a peer in the middle of a message of this size is busy, not silent
LINK_WINDOW_BYTES = 256 << 10   # of large messages, handed to the operating system at a time
KERNEL_UNSENT_BYTES = 128 << 10     # what the kernel should hold before it reaches the network (TCP_NOTSENT_LOWAT)
HELLO_BYTES_MAX = 4096          # accepted from a connection that has not greeted yet
HELLO_S = 2.0                   # time for the greeting
DIAL_S = 1.0                    # time for a TCP connection
REDIAL_S = 0.03, 0.1            # pause before dialling again, drawn from this range
REDIAL_REFUSED_S = 1.0          # a peer that refuses us is dialled less and less often, down to once in this time
DUPLICATE_S = 1.0               # who was heard within this time keeps its place when another comes with its name
SILENCE_S = 3.0                 # silence of a dead connection: nodes describe themselves every INFO_S
WATCH_S = 0.5                   # how often a node looks for silent connections
STRANGERS_MAX = 64              # connections that have not greeted yet, and TLS handshakes in progress

# ---- File descriptors

JOURNAL_FILES_MAX = 64          # journal segments open at once, 2 GiB of them; a longer journal makes do with these
HELD_FILES = 8                  # descriptors held ready for the journal's next segments, and as many for snapshots
# Standard streams, event loop, locks, snapshots and their directories, the pipe to a child, and what the C library and
# the interpreter open for a moment.
OTHER_FILES = 32
# For each other node: the connections in both directions, both once more while they are replaced, and a snapshot on its
# way to it and from it.
PEER_FILES = 6


def reserved_descriptors(members: int) -> int:
    """The file descriptors that a node of `members` nodes may need in addition to those for clients and HTTP."""
    own = JOURNAL_FILES_MAX + 2 * HELD_FILES + OTHER_FILES + PAGE_FILES_MAX
    return own + STRANGERS_MAX + PEER_FILES * max(0, members - 1)
