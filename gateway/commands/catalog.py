"""The table of all verbs, and the only list of them in the gateway.

Grammar, REQ, rights, transactions, metrics, and finding the data behind a malformed line are all driven by it. A verb
has several rows if its forms differ in how they are run; the first row whose grammar accepts the line applies. To add a
verb, add a row here and its function in the grammar; a command that is a single operation is run by `write.proposed`.
(docs/ARCHITECTURE.md, "How to add a command")
"""

from __future__ import annotations

from sockpqd.gateway.auth import permissions as may
from sockpqd.gateway.commands import (
    admin,
    auth,
    bulk,
    choice,
    clone,
    events,
    find,
    immediate,
    pulses,
    read,
    sessions,
    streams,
    transactions,
    write,
)
from sockpqd.gateway.commands.context.audited import audited
from sockpqd.gateway.commands.region import feed, replica
from sockpqd.gateway.protocol.command import InTransaction, Kind, Row
from sockpqd.gateway.protocol.grammar import events as event_lines
from sockpqd.gateway.protocol.grammar import find as find_line
from sockpqd.gateway.protocol.grammar import groups as group_lines
from sockpqd.gateway.protocol.grammar import help as help_lines
from sockpqd.gateway.protocol.grammar import items as item_lines
from sockpqd.gateway.protocol.grammar import lists, queues, sched, servers, users
from sockpqd.gateway.protocol.grammar import pulses as pulse_lines
from sockpqd.gateway.protocol.grammar import sessions as session_lines
from sockpqd.gateway.protocol.grammar import topics as topic_lines
from sockpqd.gateway.protocol.grammar import workers as worker_lines
from sockpqd.gateway.protocol.grammar.jobs import ends, puts, selectors, take
from sockpqd.gateway.protocol.grammar.parts import bodies
from sockpqd.gateway.protocol.grammar.parts.no_arguments import alone
from sockpqd.gateway.protocol.verbs import Verbs

LOGGED, AT_ONCE, READ, ALONE = Kind.LOGGED, Kind.AT_ONCE, Kind.READ, Kind.ALONE
QUEUED, AS_EVER, ENDS, CLOSES = (
    InTransaction.QUEUED, InTransaction.AS_EVER, InTransaction.ENDS, InTransaction.CLOSES,
)

# Costs, of the budget of a turn (server/hub.py). Further costs are charged where they are known: long lines by the
# parser, the work of operations by the log.
PLAIN = 1
LOOK = 6        # formats an answer of many figures: a turn full of these is as long as one of other commands
RECORD = 32     # may read a block of records from the disk for one of them
LIST = 8        # begins an answer of any length: each of its pieces waits for a turn of its own (commands/streams.py)


# fmt: off
ROWS = (
    #   word                 grammar                      right             what runs it           kind     cost
    # ---- jobs
    Row(b"PUT",              puts.put,                    may.put,          write.put,             LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=bodies.JOB, usual=puts.USUAL_PUT),
    Row(b"PUT",              puts.put_wait,               may.put_wait,     write.put_wait,        LOGGED,  PLAIN,
        numbered=True, body=bodies.JOB, counted_as="PUT WAIT"),
    Row(b"PUTS",             puts.puts,                   may.puts,         write.puts,            LOGGED,  PLAIN,
        numbered=True, body=bodies.JOBS),
    Row(b"GET",              take.get,                    may.get,          write.get,             LOGGED,  PLAIN,
        numbered=True, takes=True, usual=take.USUAL_GET),
    Row(b"GET",              take.get_number,             may.get_number,   write.proposed,        LOGGED,  PLAIN,
        numbered=True),
    Row(b"GETB",             take.getb,                   may.get,          write.blocking_get,    LOGGED,  PLAIN,
        numbered=True, takes=True, usual=take.USUAL_GETB),
    Row(b"GETBE",            take.getbe,                  may.get,          write.blocking_get,    LOGGED,  PLAIN,
        numbered=True, takes=True, counted_as="GETB"),
    Row(b"DONE",             ends.done,                   may.running,      write.ended,           LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=ends.DONE_DATA, usual=ends.USUAL_DONE),
    Row(b"DONE",             ends.done_many,              may.all_running,  write.of_many,         LOGGED,  PLAIN,
        numbered=True),
    Row(b"LATER",            ends.later,                  may.running,      write.later,           LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=ends.LATER_ERROR),
    Row(b"LATER",            ends.later_many,             may.all_running,  write.of_many,         LOGGED,  PLAIN,
        numbered=True),
    Row(b"TOUCH",            ends.touch,                  may.running,      write.proposed,        LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"TOUCH",            ends.touch_many,             may.all_running,  write.of_many,         LOGGED,  PLAIN,
        numbered=True),
    Row(b"CHANGE",           selectors.change,            may.change,       write.with_data,       LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=selectors.CHANGE_DATA),
    Row(b"DELETE",           selectors.delete,            may.selected,     write.delete,          LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"MOVE",             selectors.move,              may.move,         write.with_data,       LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=selectors.MOVE_DATA),
    Row(b"BURY",             ends.bury,                   may.running,      write.ended,           LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED, body=ends.BURY_ERROR),
    Row(b"KICK",             ends.kick,                   may.queue,        audited(bulk.kick),    LOGGED,  PLAIN,
        numbered=True),
    Row(b"KICK",             ends.kick_place,             may.kicked_place, write.proposed,        LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"KICK",             ends.kick_number,            may.selected,     audited(write.proposed), LOGGED, PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"PEEK",             selectors.peek_error,        may.selected,     read.peek_error,       READ,    RECORD),
    Row(b"PEEK",             selectors.peek,              may.selected,     read.peek,             READ,    LOOK),
    Row(b"PEEK",             selectors.peek_ended,        may.selected,     read.peek_ended,       READ,    RECORD),
    Row(b"PEEK",             selectors.peek_result,       may.selected,     read.peek_result,      READ,    RECORD),
    Row(b"PEEK",             selectors.peek_queue_ended,  may.queue,        read.peek_queue_ended, READ,    LIST),
    Row(b"PEEK",             selectors.peek_queue,        may.queue,        read.peek_queue,       READ,    LIST),
    Row(b"FIND",             find_line.find,              may.found,        find.find,             READ,    LIST),
    Row(b"AWAIT",            selectors.await_end,         may.awaited,      write.await_end,       READ,    PLAIN),
    Row(b"JOB STAT",         selectors.job_stat,          may.selected,     read.job_stat,         READ,    LOOK),
    Row(b"POLICY",           queues.policy,               may.any_user,     choice.policy,         AT_ONCE, PLAIN),
    # ---- transactions: COMMIT needs no right, as each command was checked when it was queued
    Row(b"BEGIN",            alone,                       may.any_user,     transactions.begin,    AT_ONCE, PLAIN),
    Row(b"COMMIT",           alone,                       may.any_user,     transactions.commit,   LOGGED,  PLAIN,
        numbered=True, in_transaction=ENDS),
    Row(b"ROLLBACK",         alone,                       may.any_user,     transactions.rollback, AT_ONCE, PLAIN,
        in_transaction=ENDS),
    # ---- queues, and settings of the cluster
    Row(b"QUEUE CREATE",     queues.queue_create,         may.settings,     audited(pulses.configure_queue),
        LOGGED, PLAIN, numbered=True),
    Row(b"QUEUE CONFIG",     queues.queue_settings,       may.queue,        read.queue_settings,   READ,    LOOK),
    Row(b"QUEUE CONFIG",     queues.queue_config,         may.settings,     audited(pulses.configure_queue),
        LOGGED, PLAIN, numbered=True),
    Row(b"QUEUE DELETE",     queues.queue_delete,         may.queue,        audited(bulk.delete_queue), LOGGED, PLAIN,
        numbered=True),
    Row(b"QUEUE PURGE",      queues.queue_purge,          may.queue,        audited(bulk.purge),   LOGGED,  PLAIN,
        numbered=True),
    Row(b"QUEUE MOVE",       queues.queue_move,           may.both_queues,  audited(bulk.move),    LOGGED,  PLAIN,
        numbered=True),
    Row(b"QUEUE PAUSE",      queues.queue_pause,          may.queue,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"QUEUE RESUME",     queues.queue_resume,         may.queue,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"QUEUE STAT",       queues.one_queue,            may.queue,        read.queue_stat,       READ,    LOOK),
    Row(b"QUEUE LIST",       queues.queue_list,           may.some_queue,   read.queue_list,       READ,    LIST),
    Row(b"CONFIG",           queues.settings,             may.any_user,     read.settings,         READ,    LOOK),
    Row(b"CONFIG",           queues.config,               may.admin,        audited(choice.configure), LOGGED, PLAIN,
        numbered=True),
    # ---- pulses
    Row(b"PULSE CREATE",     pulse_lines.pulse_create,    may.pulse,        audited(pulses.create), LOGGED, PLAIN,
        numbered=True),
    Row(b"PULSE CONFIG",     pulse_lines.pulse_config,    may.pulse,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"PULSE DELETE",     pulse_lines.pulse_delete,    may.pulse,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"PULSE SET",        pulse_lines.pulse_set,       may.pulse,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True, body=bodies.OF_PULSE),
    Row(b"PULSE WAIT",       pulse_lines.pulse_wait,      may.turn,         pulses.wait,           LOGGED,  PLAIN,
        numbered=True),
    Row(b"PULSE RESULT",     pulse_lines.pulse_result,    may.ticket,       pulses.result,         LOGGED,  PLAIN,
        numbered=True),
    Row(b"PULSE LIST",       alone,                       may.some_queue,   pulses.list_,          READ,    LIST),
    Row(b"PULSE STAT",       pulse_lines.pulse_stat,      may.seen_pulse,   pulses.stat,           READ,    LOOK),
    # ---- items
    Row(b"ITEM STAT",        item_lines.stat,             may.item,         read.item_stat,        READ,    LOOK),
    Row(b"ITEM HOLD",        item_lines.hold,             may.held_item,    write.hold,            LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"ITEM RELEASE",     item_lines.release,          may.held_item,    write.proposed,        LOGGED,  PLAIN,
        numbered=True, in_transaction=QUEUED),
    Row(b"ITEM CANCEL",      item_lines.cancel,           may.held_item,    audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"ITEM RETRY",       item_lines.retry,            may.own_item,     audited(bulk.retry),   LOGGED,  PLAIN,
        numbered=True),
    Row(b"ITEM LIST",        item_lines.list_,            may.any_user,     read.item_list,        READ,    LIST),
    # ---- fair shares
    Row(b"SCHED SHOW",       alone,                       may.any_user,     read.sched_show,       READ,    LOOK),
    Row(b"SCHED GROUP",      sched.sched_group,           may.shown_group,  read.sched_group,      READ,    LOOK),
    Row(b"SCHED CONFIG",     sched.sched_settings,        may.any_user,     read.sched_settings,   READ,    LOOK),
    Row(b"SCHED CONFIG",     sched.sched_config,          may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    # ---- groups
    Row(b"GROUP CONFIG",     group_lines.group_settings,  may.admin,        read.group_settings,   READ,    LOOK),
    Row(b"GROUP CONFIG",     group_lines.group_config,    may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"GROUP PAUSE",      group_lines.group_pause,     may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"GROUP RESUME",     group_lines.group_resume,    may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"GROUP DELETE",     group_lines.group_delete,    may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"GROUP LIST",       group_lines.group_list,      may.any_user,     read.group_list,       READ,    LIST),
    # ---- the whole state
    Row(b"TOTAL",            lists.total,                 may.total,        read.total,            READ,    LOOK),
    Row(b"RUNLIST",          lists.runlist,               may.all_jobs,     read.run_list,         READ,    LIST),
    Row(b"SNAPSHOT",         servers.snapshot,            may.admin,        audited(streams.snapshot), ALONE, PLAIN),
    Row(b"CLONE",            servers.clone,               may.admin,        audited(clone.clone),  ALONE,   PLAIN,
        numbered=True, in_transaction=AS_EVER, body=bodies.SNAPSHOT),
    # ---- sessions
    Row(b"SESSION",          session_lines.session,       may.any_user,     sessions.open_session, ALONE,   PLAIN),
    Row(b"SESSION",          session_lines.session_attach, may.any_user,    sessions.attach_session, ALONE, PLAIN),
    Row(b"SESSION CLOSE",    session_lines.session_close, may.any_user,     sessions.close_session, ALONE, PLAIN),
    Row(b"SESSION KEEP",     session_lines.session_keep,  may.any_user,     sessions.keep_sessions, ALONE, PLAIN),
    Row(b"SESSION LIST",     alone,                       may.admin,        read.session_list,     READ,    LIST),
    Row(b"SESSION END",      session_lines.session_end,   may.admin,        audited(sessions.end_session),
        ALONE, PLAIN),
    Row(b"TAKEN",            alone,                       may.any_user,     sessions.taken,        ALONE,   LIST),
    Row(b"PING",             alone,                       may.anybody,      sessions.ping,         AT_ONCE, PLAIN,
        in_transaction=AS_EVER, while_subscribed=True),
    # ---- events
    Row(b"SUBSCRIBE",        event_lines.subscribe,       may.subscribe,    events.subscribe,      ALONE,   PLAIN,
        while_subscribed=True),
    Row(b"NOTIFY",           event_lines.notify,          may.notify,       events.notify,         AT_ONCE, PLAIN,
        body=bodies.MESSAGE),
    Row(b"UNSUBSCRIBE",      alone,                       may.any_user,     events.unsubscribe,    ALONE,   PLAIN,
        while_subscribed=True),
    # ---- topics
    Row(b"TOPIC BIND",       topic_lines.bind,            may.binding,      audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"TOPIC UNBIND",     topic_lines.unbind,          may.binding,      audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"TOPIC DELETE",     topic_lines.delete,          may.topic,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    Row(b"TOPIC LIST",       topic_lines.topic_list,      may.some_queue,   read.topic_list,       READ,    LIST),
    # ---- workers
    Row(b"WORKER",           worker_lines.heartbeat,      may.taking_some,  write.heartbeat,       LOGGED,  PLAIN,
        numbered=True),
    Row(b"WORKER LIST",      alone,                       may.any_user,     read.worker_list,      READ,    LIST),
    Row(b"WORKER SET",       worker_lines.set_worker,     may.admin,        audited(write.proposed), LOGGED, PLAIN,
        numbered=True),
    # ---- users
    Row(b"AUTH",             users.auth,                  may.anybody,      auth.with_secret,      ALONE,   PLAIN),
    Row(b"AUTH",             users.auth_word,             may.anybody,      auth.with_word,        ALONE,   PLAIN),
    Row(b"USER SET",         users.user_set,              may.admin,        audited(auth.set_user), ALONE, PLAIN),
    Row(b"USER DELETE",      users.user_delete,           may.admin,        audited(auth.delete_user), ALONE, PLAIN),
    Row(b"USER LIST",        alone,                       may.admin,        read.user_list,        READ,    LIST),
    # ---- the cluster
    Row(b"INTERCONNECT",     servers.between_servers,     may.any_user,     read.interconnect,     READ,    LOOK),
    Row(b"CLUSTER STATUS",   alone,                       may.any_user,     read.cluster_status,   READ,    LOOK),
    Row(b"CLUSTER LEADER",   alone,                       may.any_user,     read.cluster_leader,   READ,    LOOK),
    Row(b"CLUSTER HASH",     alone,                       may.any_user,     read.cluster_hash,     READ,    LOOK),
    Row(b"CLUSTER ID",       alone,                       may.anybody,      immediate.cluster_id,  AT_ONCE, PLAIN,
        in_transaction=AS_EVER),
    Row(b"MAP",              alone,                       may.any_user,     read.cluster_map,      READ,    LOOK),
    Row(b"MAP SET",          servers.map_set,             may.admin,        audited(admin.set_map), ALONE,  PLAIN,
        body=bodies.OF_MAP),
    Row(b"CLUSTER ADD",      servers.cluster_add,         may.admin,        audited(admin.cluster_add), ALONE, PLAIN),
    Row(b"CLUSTER REMOVE",   servers.cluster_remove,      may.admin,        audited(admin.cluster_remove),
        ALONE, PLAIN),
    Row(b"CLUSTER TRANSFER", servers.cluster_transfer,    may.admin,        audited(admin.cluster_transfer),
        ALONE, PLAIN),
    Row(b"CLUSTER ONLINE",   alone,                       may.admin,        audited(admin.cluster_online),
        ALONE, PLAIN),
    Row(b"CLUSTER OFFLINE",  alone,                       may.admin,        audited(admin.cluster_offline),
        ALONE, PLAIN, counted_as="CLUSTER ONLINE"),
    Row(b"CLUSTER SNAPSHOT", alone,                       may.admin,        audited(admin.cluster_snapshot),
        ALONE, PLAIN),
    Row(b"CLUSTER PROMOTE",  servers.cluster_promote,     may.admin,        audited(admin.cluster_promote),
        ALONE, PLAIN),
    Row(b"CLUSTER FENCED",   servers.cluster_fenced,      may.admin,        audited(admin.cluster_fenced),
        ALONE, PLAIN),
    Row(b"CLUSTER REPLICA",  alone,                       may.any_user,     replica.replica,       READ,    LOOK),
    Row(b"CLUSTER FEED",     servers.cluster_feed,        may.admin,        audited(feed.feed),    ALONE,   LIST),
    Row(b"CLUSTER FEED",     servers.cluster_feed_snapshot, may.admin,      audited(feed.snapshot), ALONE,  LIST),
    Row(b"SYNC",             servers.sync,                may.any_user,     immediate.say,         AT_ONCE, PLAIN,
        body=bodies.OF_SYNC, counted_as=""),
    # ---- this node and this connection
    Row(b"OFFLINE",          alone,                       may.admin,        audited(admin.offline), ALONE, PLAIN),
    Row(b"ONLINE",           alone,                       may.admin,        audited(admin.online), ALONE,   PLAIN),
    Row(b"SHUTDOWN",         alone,                       may.admin,        audited(immediate.shut_down), ALONE, PLAIN),
    Row(b"CAPS",             alone,                       may.anybody,      immediate.caps,        AT_ONCE, PLAIN,
        in_transaction=AS_EVER),
    Row(b"HELP",             help_lines.help_,            may.anybody,      immediate.help_,       AT_ONCE, LOOK,
        in_transaction=AS_EVER),
    Row(b"QUIT",             alone,                       may.anybody,      immediate.quit_,       ALONE,   PLAIN,
        in_transaction=CLOSES, while_subscribed=True),
)
# fmt: on

NO_VERB = b""       # of the parser's own commands, which have no line


def verbs(*more: Row) -> Verbs:
    """Return the verbs of the protocol, plus `more` (for tests)."""
    return Verbs(
        (*ROWS, *more),
        refused=Row(NO_VERB, alone, may.anybody, immediate.say, AT_ONCE, PLAIN, counted_as=""),
        broken=Row(NO_VERB, alone, may.anybody, immediate.say_last, ALONE, PLAIN, in_transaction=CLOSES, counted_as=""),
        data=Row(NO_VERB, alone, may.anybody, clone.data, AT_ONCE, PLAIN, in_transaction=AS_EVER, counted_as=""),
    )


VERBS = verbs()
