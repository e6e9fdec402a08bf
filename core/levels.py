"""Feature levels: the contents that all nodes know, so that a log or state may have them (spec/cluster 12.1).

A cluster has a level, which is part of the replicated state. A program knows all levels up to FEATURE_LEVEL. As long
as the level of the cluster is lower, because some nodes still run an older program, nothing newer gets into the log.
When all nodes know more the leader raises it (RaiseLevel, cluster/leader/feature_level.py), and it never goes down.

    level   what came with it
    1       everything of release 1.0
    2       a copy in another region

A change that adds to the contents of a log or a state raises FEATURE_LEVEL, once per release, and adds a line above.
Then

* a new operation has its level in its row (handlers/table.py);
* a new option of an operation is a field at its end, with a default, and its level is in FIELD_LEVELS. Below that level
  the leader refuses operations in which it differs from the default, and leaves it out of all others, because programs
  that do not know it refuse longer records; so does a node that forwards an operation to the leader (as_of());
* an old operation that is to be executed, charged (`State.spent`) or answered differently asks `State.level`, also for
  a new reply: what is charged decides where an entry ends;
* a snapshot holds what is new only in a state of that level: a new kind of frame, fields at the end of rows, or a new
  format (snapshot/write.py);
* a new message between nodes is sent only to nodes that have reported the level (cluster/wire/messages.py);
* a new word of CAPS has its level in gateway/protocol/responses.py.
"""

FIRST_LEVEL = 1                 # of states and nodes that say nothing of levels
REPLICAS = 2
FEATURE_LEVEL = 2               # what this program knows

FIELD_LEVELS: dict[tuple[str, str], int] = {}       # of fields above the first level, by the operation and the field
