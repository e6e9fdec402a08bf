"""The options of pqworker, on the command line and in a file; and where an app comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sockpq import BadArguments
from sockpq.worker import App
from sockpq.worker.program.exec_program import ExecLine
from sockpq.worker.program.loading import load
from sockpq.worker.program.options import KEYS, parse, pool_settings


def test_options_become_settings() -> None:
    options = parse([
        "app:app", "--queues", "a,b", "--autoscale", "10,3", "--pool", "processes", "--strategy", "fast",
        "--prefetch", "2", "--by", "fair", "--max-tasks-per-child", "100", "--max-memory-per-child", "200M",
        "--memory-share", "60%", "--time-limit", "30", "--soft-time-limit", "20", "--name", "w1",
    ])
    settings = pool_settings(options)
    assert settings == settings._replace(
        queues=("a", "b"), most=10, least=3, kind="processes", strategy="fast", prefetch=2, by="fair", tasks_max=100,
        memory_bytes_max=200 * 2**20, memory_share=0.6, time_limit=30, soft_time_limit=20, name="w1",
    )
    fixed = pool_settings(parse(["app:app", "-c", "4"]))
    assert (fixed.most, fixed.least, fixed.prefetch, fixed.strategy, fixed.keepalive) == (4, 4, 4, "fair", 30)


def test_the_file_has_the_same_names_and_the_command_line_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text('queues = ["a", "b"]\nconcurrency = 7\nprefetch = 9\nautoscale = [10, 3]\n"time-limit" = 2.5\n')
    settings = pool_settings(parse(["app:app", "--config", str(file), "--prefetch", "1"]))
    file.write_text(file.read_text() + 'app = "mail.tasks:app"\n')
    assert parse(["--config", str(file)]).app == "mail.tasks:app"
    assert (settings.queues, settings.most, settings.prefetch, settings.time_limit) == (("a", "b"), 10, 1, 2.5)


@pytest.mark.parametrize(
    "text", ["nonsense = 1", "prefetch = 0", 'autoscale = "3,10"', "queues = 5", "progress = 1", "= x", 'name = "a b"'],
)
def test_a_file_with_a_fault_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(text)
    with pytest.raises(BadArguments, match=r"worker\.toml"):
        parse(["app:app", "--config", str(file)])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name an app"),
        (["app:app", "--exec", "cat"], "one of them"),
        (["app:app", "--prefetch", "x"], "prefetch = 'x'"),
        (["app:app", "--memory-share", "60"], "share"),
        (["app:app", "--name", "LIST"], "neither LIST nor SET"),
        (["app:app", "--config", "/no/such/file"], "No such file"),
        (["app:app", "--pool", "threads", "--time-limit", "5"], "a thread cannot be ended"),
        (["app:app", "--pool", "asyncio", "--max-tasks-per-child", "5"], "need processes"),
        (["app:app", "-c", "100000"], "children"),
    ],
)
def test_what_is_wrong_is_told(arguments: list[str], told: str) -> None:
    with pytest.raises(BadArguments, match=told):
        pool_settings(parse(arguments))


def test_every_option_of_the_issue_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = capsys.readouterr().out
    for key in (*(KEYS.keys() - {"app"}), "config"):
        assert f"--{key}" in told
    assert "-c N" in told


def test_an_app_is_found_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_app_1.py").write_text(
        "from sockpq.worker import App\napp = App()\nother = 5\nempty = App()\n"
        "@app.handler('q')\ndef f(job): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load(parse(["some_app_1"])).queues == ("q",)
    assert isinstance(load(parse(["some_app_1:app", "--servers", "h:1"])), App)
    for wrong, told in (
        (["some_app_1:other"], "is not a sockpq.worker.App"), (["no_such_module_1:app"], "there is no module"),
        (["some_app_1:nothing"], "is not a sockpq.worker.App"), (["some_app_1:empty"], "neither a task nor a handler"),
        (["some_app_1", "--queues", "x"], "no handler for queue x"), (["some_app_1", "--tries", "2"], "is for --exec"),
        (["--exec", "cat"], "needs --queues"), (["--exec", "cat '", "--queues", "q"], "No closing quotation"),
        (["--exec", "cat %z", "--queues", "q"], "there is no %z"),
    ):
        with pytest.raises(BadArguments, match=told):
            load(parse(wrong))


def test_the_words_of_a_program_have_the_jobs_values() -> None:
    class Meta:
        key = "a.b"
        attempt = 2

    class Job:
        id = 7
        queue = "thumbs"
        meta: Any = Meta

    line = ExecLine("convert - 'out dir/%k.png' %q:%i:%a 100%% $HOME")
    assert line.words(Job()) == ["convert", "-", "out dir/a.b.png", "thumbs:7:2", "100%", "$HOME"]
    Job.meta = None
    assert ExecLine("cat %k").words(Job()) == ["cat", "7"]
