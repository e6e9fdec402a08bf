"""docs/FLOWS.md: its programs run as they stand, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sockpq import Client
from sockpq.worker import App

from tests.client.real_server import RealServer
from tests.worker.flows.working import at_work

PAGE = (Path(__file__).parents[3] / "docs/FLOWS.md").read_text()


def test_its_programs_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with RealServer() as server, Client(server.address) as client:
        monkeypatch.setenv("SOCKPQ_SERVERS", server.address)
        client.queue_config("pictures", retain=3600)
        client.queue_config("notices", retain=3600)
        names: dict[str, Any] = {"__name__": "app"}
        for program in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(program, names)
        app: App = names["app"]
        with at_work(server, app) as worker:
            good, bad = names["order"](["a.gif", "b.gif"]), names["order"](["a.gif", "b.txt"])
            assert names["show"](good) == "0 done, 0 failed, 2 to go"
            worker.work_off()
            assert sorted(capsys.readouterr().out.split("\n")) == ["", "all done", "one failed", "over", "over"]
            assert (names["show"](good), names["show"](bad)) == ("it has ended", "1 done, 1 failed, 0 to go")
            app.batch_handle(bad).cancel()
            saved = names["publish"]("a.gif", "b.gif")
            (shown,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
            assert without_states(names["look"](saved)) == without_states(shown)
            worker.work_off()
            assert names["look"](saved).count("done") == 4
            assert capsys.readouterr().out == "published\n"
            failing = names["publish"]("a.gif", "b.txt")
            worker.work_off()
            assert capsys.readouterr().out == "not published\n"
            states = re.findall(r"done|dead|cancelled", names["look"](failing))
            assert states == ["done", "dead", "cancelled", "cancelled"]
        app.close()


def without_states(graph: str) -> list[str]:
    return [" ".join(re.sub(r"\b(done|running|ready|delayed)\b", "-", line).split()) for line in graph.split("\n")]
