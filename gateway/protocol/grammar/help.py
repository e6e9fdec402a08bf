"""The grammar of HELP, and its text: the synopsis of docs/PROTOCOL.md, a line for each form of a command."""

from __future__ import annotations

from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar import events, find, queues, sched
from sockpqd.gateway.protocol.grammar.jobs import ends, puts, selectors, take
from sockpqd.gateway.protocol.grammar.parts.options import Option, Table, keywords
from sockpqd.gateway.protocol.reasons import shown, suggestion

SYNOPSIS = (
    "PUT <queue> <priority> <length> [IS <item> | NEW] [options]",
    "PUT <queue>|<queue>... <priority> <length> [IS <item>] [options]",
    "PUT @<topic> <priority> <length> [IS <item>] [ROUTE <key>] [options]",
    "TOPIC BIND <topic> <queue> [PATTERN <pattern>]",
    "TOPIC UNBIND <topic> <queue> [PATTERN <pattern>]",
    "TOPIC LIST [<prefix>*]",
    "TOPIC DELETE <topic>",
    "PUTS <n>",
    "GET [<queues> | *] [EXPIRE <seconds> [THEN LATER | THEN DONE | THEN DEAD]]",
    "GETB [<queues> | *] [EXPIRE <seconds> [THEN LATER | THEN DONE | THEN DEAD]]",
    "GETBE [<queues> | *] [EXPIRE <seconds> [THEN LATER | THEN DONE | THEN DEAD]]",
    "GET NUMBER <n> [EXPIRE <seconds> [THEN ..]] [META [LIFE]] [HEAD] [BOUND]",
    "GET|GETB|GETBE (<queues> | *) [options]",
    "POLICY <policy>",
    "DONE <id>",
    "DONE <id> LAST",
    "DONE <id> <id> ...",
    "LATER <id> <id> ...",
    "LATER <id> [options]",
    "LATER <id> <id>... [FIRST]",
    "TOUCH <id> [EXPIRE <seconds> [THEN LATER | THEN DONE | THEN DEAD]] [RAN <seconds>] "
    "[PROGRESS <0 to 100>]",
    "TOUCH <id> <id>... [EXPIRE ..]",
    "PUT <queue> <priority> <length> (IS <item> | NEW) WAIT <queue2> [EXPIRE <seconds> [THEN LATER "
    "| THEN DONE | THEN DEAD]] [options]",
    "JOB STAT NUMBER <n>",
    "CHANGE <job> [options]",
    "DELETE <job>",
    "DELETE NUMBER <n> UNTAKEN",
    "DELETE NUMBER <n> ENDED",
    "PEEK <job> [HEAD] [LIFE]",
    "PEEK <job> ERROR",
    "PEEK <queue> (READY | DELAYED | RUNNING | DEAD | BURIED) [COUNT <n>] [SEQ] [HEAD] [LIFE]",
    "PEEK NUMBER <n> ENDED [HEAD] [LIFE]",
    "PEEK NUMBER <n> RESULT",
    "PEEK <queue> ENDED [COUNT <n>] [SEQ] [HEAD] [LIFE]",
    "MOVE <id> <queue> [PRI <priority>] [DELAY <seconds> | AT <unix time>] [HEAD <h>] [DATA <length>]",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "BURY <id> [REASON <word>] [ERROR <length>]",
    "BURY <id> HERE [PRI <priority>] [REASON <word>] [ERROR <length>]",
    "KICK <queue> <n>",
    "KICK <queue> <n> HERE",
    "KICK JOB SEQ <queue> <n>",
    "KICK JOB NUMBER <n>",
    "KICK JOB NUMBER <n> ENDED",
    "AWAIT (NUMBER <n> | KEY <queue> <key>) [WITHIN <seconds>]",
    "ITEM STAT <item>",
    "ITEM LIST [<prefix>*] [HELD]",
    "ITEM HOLD (<item> | NEW) [EXPIRE <seconds> [THEN (CANCEL|RELEASE)]]",
    "ITEM RELEASE <item>",
    "ITEM CANCEL <item> [REASON <word>]",
    "ITEM RETRY <item>",
    "SESSION [TTL <seconds>]",
    "SESSION <sid>",
    "SESSION CLOSE [RELEASE [FIRST]]",
    "SESSION KEEP <sid> <sid>..",
    "SESSION LIST",
    "SESSION END <number>",
    "REQ <number> <command>",
    "GET|GETB|GETBE (<queues> | *) [options] [BOUND]",
    "TAKEN",
    "WORKER <name> <slots> <busy>",
    "WORKER LIST",
    "WORKER SET <name> [MAX <n>] [MIN <n>] [STATE (RUN | PAUSE | STOP)]",
    "TOTAL [<queue>]",
    "QUEUE LIST [<prefix>*]",
    "QUEUE STAT <queue>",
    "FIND (<queues> | *) [options]",
    "RUNLIST",
    "RUNLIST DATA",
    "SNAPSHOT [USERS]",
    "CLONE <length>",
    "PING",
    "CAPS",
    "HELP [<verb>]",
    "SUBSCRIBE <types> [<names>] [FROM <seq>]",
    "UNSUBSCRIBE",
    "NOTIFY <channel> <length>",
    "QUEUE CREATE <queue> [settings]",
    "QUEUE CONFIG <queue> <settings>",
    "QUEUE CONFIG <queue>",
    "QUEUE PAUSE <queue> (IN | OUT | ALL)",
    "QUEUE PAUSE <queue> OUT FOR <seconds>",
    "QUEUE RESUME <queue>",
    "QUEUE PURGE <queue> (READY | DELAYED | RUNNING | DEAD | BURIED | ENDED | OWN | ALL)",
    "QUEUE DELETE <queue> [FORCE [LEAVE]]",
    "QUEUE MOVE <from> <to> [COUNT <n>] [DIED <queue>]",
    "QUEUE MOVE <from> <to> SEQ <n>",
    "SCHED SHOW",
    "SCHED GROUP <group>",
    "SCHED CONFIG",
    "SCHED CONFIG <setting> <value> ...",
    "GROUP CONFIG <group> [LIMIT <n>] [RATE <n> PER <seconds>] [WEIGHT <n>]",
    "GROUP CONFIG <group>",
    "GROUP PAUSE <group> [FOR <seconds>]",
    "GROUP RESUME <group>",
    "GROUP DELETE <group>",
    "GROUP LIST [<prefix>*]",
    "CONFIG <setting> <value>",
    "CONFIG",
    "PULSE CREATE <name> [RATE <n>] [PER <seconds>] [STEP <seconds>] [MAXPAUSE <seconds>] [MAXRUN "
    "<seconds>] [TOGETHER [MAXWAIT <seconds>]] [SPREAD]",
    "PULSE CONFIG <name> [RATE <n>] [PER <seconds>] [STEP <seconds>] [MAXPAUSE <seconds>] [MAXRUN "
    "<seconds>] [MAXWAIT <seconds>] [SPREAD ON|OFF]",
    "PULSE DELETE <name>",
    "PULSE SET <name> <length> [DENY]",
    "PULSE WAIT <name> [WITHIN <seconds>]",
    "PULSE RESULT <ticket> OK|FAIL|SLOW [REASON <word>]",
    "PULSE RESULT <ticket> SLEEP <seconds> [REASON <word>]",
    "PULSE LIST",
    "PULSE STAT <name>",
    "AUTH <user> <secret>",
    "AUTH <user>",
    "AUTH <answer>",
    "USER SET <user> <rights> <key>",
    "USER DELETE <user>",
    "USER LIST",
    "INTERCONNECT",
    "CLUSTER LEADER",
    "CLUSTER STATUS",
    "CLUSTER HASH",
    "CLUSTER ID",
    "CLUSTER ADD <name> <peer ip> <peer port> <ip> <port>",
    "CLUSTER REMOVE <name>",
    "CLUSTER TRANSFER [<name>]",
    "CLUSTER OFFLINE",
    "CLUSTER ONLINE",
    "CLUSTER SNAPSHOT",
    "CLUSTER PROMOTE [GRACE <seconds>]",
    "CLUSTER FENCED <id>",
    "CLUSTER REPLICA",
    "CLUSTER FEED <index> [<at> <hash>]",
    "CLUSTER FEED SNAPSHOT [<index> <offset>]",
    "OFFLINE",
    "ONLINE",
    "SHUTDOWN",
    "QUIT",
    "MAP",
    "MAP SET <version> <length>",
)


def _by_verb() -> dict[bytes, tuple[str, ...]]:
    """The lines of each verb, by its first word and by its two words."""
    found: dict[bytes, tuple[str, ...]] = {}
    for line in SYNOPSIS:
        first, *more = line.encode().split()
        for word in first.split(b"|"):
            verbs = [word, b" ".join((word, more[0]))] if more and more[0].isalpha() else [word]
            for verb in verbs:
                found[verb] = (*found.get(verb, ()), line)
    return found


_LINES = _by_verb()

# The words that replace `[options]` and `[settings]` in the lines of a verb.
_KEYWORDS: dict[bytes, tuple[str, Table]] = {
    b"PUT": ("options", puts.OPTIONS), **dict.fromkeys((b"GET", b"GETB", b"GETBE"), ("options", take.OPTIONS)),
    b"LATER": ("options", ends.LATER_OPTIONS), b"CHANGE": ("options", selectors.CHANGE_OPTIONS),
    b"FIND": ("options", find.OPTIONS),
    b"QUEUE CREATE": ("settings", queues.CREATE_SETTINGS), b"QUEUE CONFIG": ("settings", queues.SETTINGS),
    b"CONFIG": ("setting", queues.CONFIG), b"SCHED CONFIG": ("setting", sched.SETTINGS),
    b"SUBSCRIBE": ("types", dict.fromkeys(events.TYPES, Option("types"))),
}


def help_(words: Words) -> Command:
    """HELP [<verb>]. Arguments: the lines to show; for a single verb with many keywords also a line of these."""
    if len(words) == 1:
        return Command(arguments=SYNOPSIS)
    if len(words) > 3:
        raise ArgumentError("HELP takes a verb of one or two words, or nothing")
    verb = b" ".join(words[1:]).upper()
    if verb not in _LINES:
        raise ArgumentError(f"no command {shown(b' '.join(words[1:]))}{suggestion(verb, _LINES)}")
    if verb not in _KEYWORDS:
        return Command(arguments=_LINES[verb])
    what, table = _KEYWORDS[verb]
    return Command(arguments=(*_LINES[verb], f"{verb.decode()} {what}: {keywords(table)}"))
