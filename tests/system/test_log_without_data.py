"""The log of a node never has data of jobs, headers, results, texts of errors, messages or secrets, at any level."""

from __future__ import annotations

from devcluster.cluster import LocalCluster
from tests.wire import Wire

MARK = "f00dfeed" * 4           # also a key
CALL_S = 60.0
# Lines, each with the data behind it; refused ones and unknown ones as well.
COMMANDS = (
    (f"PUT q 0 {len(MARK)}", MARK),
    (f"PUT q 0 {len(MARK) + 9} HEAD {len(MARK) + 4}", f"h: {MARK}\n{MARK[:5]}"),
    (f"PUT q 0 {len(MARK)} NONSENSE", MARK),
    (f"PUT q 9.9 {len(MARK)}", MARK),
    ("PUTS 2", f"q 0 {len(MARK)}\r\n{MARK}q x {len(MARK)}\r\n{MARK}"),
    ("GET q EXPIRE 600", ""),
    (f"DONE 1 RESULT {len(MARK)}", MARK),
    ("GET q EXPIRE 600", ""),
    (f"LATER 2 ERROR {len(MARK)}", MARK),
    ("GET q EXPIRE 600", ""),
    (f"BURY 3 ERROR {len(MARK)}", MARK),
    (f"CHANGE 3 DATA {len(MARK)}", MARK),
    (f"NOTIFY channel {len(MARK)}", MARK),
    (f"USER SET somebody put {MARK}", ""),
    (f"USER SET somebody nonsense {MARK}", ""),
    (f"AUTH somebody {MARK}", ""),
    (f"UNKNOWN {MARK}", ""),
    (f"CLONE {len(MARK)}", MARK),
)


def test_nothing_that_is_private_is_in_the_log() -> None:
    with LocalCluster(1, config={"log": {"level": "debug"}}) as cluster:
        for line, data in COMMANDS:
            wire = Wire(cluster.server("n1"), CALL_S)       # one refused command may end its connection
            wire.send(line, data.encode())
            wire.line()
            wire.close()
        assert cluster.terminate("n1") == 0
        log = cluster.logs("n1")
        files = [path for path in cluster.data_dir("n1").parent.rglob("*") if path.suffix in (".log", ".toml")]
        assert len(log.splitlines()) > 5
        assert MARK not in log
        assert MARK[:8] not in log
        assert [path.name for path in files if MARK.encode() in path.read_bytes()] == []
