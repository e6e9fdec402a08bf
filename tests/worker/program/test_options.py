"""The options of pqworker, on the command line and in a file; and where an app comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sockpq import BadArguments
from sockpq.worker import App
from sockpq.worker.pool.queue_setup import wanted
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
    celerys = pool_settings(parse([
        "app:app", "--strategy", "fcfs", "--prefetch", "0", "--autoscale", "9,2", "--autoscale-keepalive", "2.5",
    ]))
    assert (celerys.strategy, celerys.prefetch, celerys.keepalive) == ("fast", 0, 2.5)
    assert pool_settings(parse(["app:app", "--strategy", "default"])).strategy == "fair"
    fixed = pool_settings(parse(["app:app", "-c", "4"]))
    assert (fixed.most, fixed.least, fixed.prefetch, fixed.strategy, fixed.keepalive) == (4, 4, 4, "fair", 30)


def test_the_file_has_the_same_names_and_the_command_line_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text('queues = ["a", "b"]\nconcurrency = 7\nprefetch = 9\nautoscale = [10, 3]\n"time-limit" = 2.5\n')
    settings = pool_settings(parse(["app:app", "--config", str(file), "--prefetch", "1"]))
    assert (settings.most, settings.least) == (10, 3)
    fixed = pool_settings(parse(["app:app", "--config", str(file), "-c", "2"]))
    assert (fixed.most, fixed.least) == (2, 2)      # the line said so
    file.write_text(file.read_text() + 'app = "mail.tasks:app"\n')
    assert parse(["--config", str(file)]).app == "mail.tasks:app"
    assert (settings.queues, settings.most, settings.prefetch, settings.time_limit) == (("a", "b"), 10, 1, 2.5)


@pytest.mark.parametrize(
    "text",
    ["nonsense = 1", "prefetch = -1", 'autoscale = "3,10"', "queues = 5", "progress = 1", "= x", 'name = "a b"'],
)
def test_a_file_with_a_fault_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(text)
    with pytest.raises(BadArguments, match=r"worker\.toml"):
        parse(["app:app", "--config", str(file)])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give either an app"),
        (["app:app", "--exec", "cat"], "either an app"),
        (["app:app", "--prefetch", "x"], "--prefetch x: needs a whole number of 0 or more"),
        (["app:app", "--prefetch", "1.5"], "--prefetch 1.5: needs a whole number"),
        (["app:app", "--time-limit", "nan"], "--time-limit nan: needs a number of seconds above 0"),
        (["--exec", "cat", "--backoff", "9,3"], "--backoff 9,3: needs the first pause and the longest"),
        (["app:app", "--soft-time-limit", "5", "--time-limit", "5"], "is not below the time limit"),
        (["app:app", "--autoscale-keepalive", "0"], "--autoscale-keepalive 0: needs a number of seconds above 0"),
        (["app:app", "--strategy", "random"], "must be one of fair, fast, default, fcfs"),
        (["app:app", "--bogus"], "unrecognized arguments: --bogus"),
        (["app:app", "--name"], "--name: expected one argument"),
        (["app:app", "--memory-share", "60"], "share"),
        (["app:app", "--name", "LIST"], "but not LIST or SET"),
        (["app:app", "--config", "/no/such/file"], "--config /no/such/file: No such file or directory$"),
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
    for number, text in enumerate((
        "\nimport no_lib_1", "def f(:", "from sockpq.worker import App\napp = App()\napp.task('q', tries=0)",
        "raise SystemExit(3)",
    ), 1):
        (tmp_path / f"broken_app_{number}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load(parse(["some_app_1"])).queues == ("q",)
    for given, asked in ([], {}), (["--backoff", "1,5"], {"backoff": (1, 5)}):      # of the queue
        assert wanted(load(parse(["--exec", "cat", "--queues", "q", *given])), "q") == asked
    assert isinstance(load(parse(["some_app_1:app", "--servers", "h:1"])), App)
    for wrong, told in (
        (["some_app_1:other"], "'other' of module 'some_app_1' is not an App; its apps: app, empty"),
        (["no_such_module_1:app"], "there is no module 'no_such_module_1' in "),
        (["some_app_1.py:app"], "do you mean some_app_1:app"), (["some_app_1.sub:app"], "there is no module"),
        ([".x:app"], "is not MODULE:APP"), (["a/b:app"], "is not MODULE:APP"), ([":app"], "is not MODULE:APP"),
        (["broken_app_1"], r"cannot be imported: ModuleNotFoundError: No module named 'no_lib_1' .*app_1.py, line 2"),
        (["broken_app_2"], r"cannot be imported: SyntaxError: .*broken_app_2.py, line 1"),
        (["broken_app_3"], r"cannot be imported: BadArguments: tries .*broken_app_3.py, line 3"),
        (["broken_app_4"], r"cannot be imported: SystemExit: 3 .*broken_app_4.py, line 1"),
        (["some_app_1:nothing"], "is not an App"), (["some_app_1:empty"], "neither a task nor a handler"),
        (["some_app_1", "--queues", "x"], "no handler for queue x"),
            (["some_app_1", "--tries", "2"], "goes with --exec only"),
        (["--exec", "cat"], "needs --queues"), (["--exec", "cat '", "--queues", "q"], "No closing quotation"),
        (["--exec", "cat %z", "--queues", "q"], "there is no %z"),
        (["--exec", "no-program-1 %k", "--queues", "q"], "there is no program 'no-program-1'"),
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

    line = ExecLine("cat - 'out dir/%k.png' %q:%i:%a 100%% $HOME")
    assert line.words(Job()) == ["cat", "-", "out dir/a.b.png", "thumbs:7:2", "100%", "$HOME"]
    Job.meta = None
    assert ExecLine("cat %k").words(Job()) == ["cat", "7"]
