"""Results of tasks of a cluster whose leader is killed while they run, with the real program."""

from __future__ import annotations

from pathlib import Path

import pytest
from sockpq.worker import App, TaskFailed

from devcluster.cluster import LocalCluster
from tests.worker.program.running import Worker

APP = '''
@app.task("slow", name="double", result=True)
async def double(number):
    record("begin", number)
    while not os.path.exists(os.environ["RECORD"] + ".go"):
        await asyncio.sleep(0.05)
    return number * 2

@app.task("slow", name="fail", retain=3600, tries=1)
def fail(number):
    raise ValueError(f"bad {number}")
'''


def test_each_task_has_its_result_though_the_leader_was_killed(tmp_path: Path) -> None:
    with LocalCluster(nodes=3) as cluster:
        servers = ",".join(cluster.servers)
        app = App(servers)
        double = app.task("slow", name="double", result=True)(lambda number: None)
        fail = app.task("slow", name="fail", retain=3600)(lambda number: None)
        with Worker(tmp_path, servers, APP, "-c", "10", "--pool", "asyncio") as worker:
            handles = [double.put(number) for number in range(8)]
            worker.until(lambda: len(worker.record) == 8)
            cluster.kill(cluster.wait_for_leader())
            (tmp_path / "record.go").touch()
            failing = fail.put(3)
            assert [handle.result(timeout=120) for handle in handles] == [number * 2 for number in range(8)]
            with pytest.raises(TaskFailed, match="ValueError: bad 3"):
                failing.result(timeout=120)
            assert [handle.state() for handle in handles] == ["done"] * 8
        app.close()
