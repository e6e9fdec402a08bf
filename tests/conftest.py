"""Marks the tests that start processes and those that take long, and implements `pytest --fast`.

    pytest -m "not processes"               # everything in this process: the lane that computes (tests/lanes.py)
    pytest -m "not processes and not long" --fast
    pytest -m "not processes" --laws 10     # tests of hypothesis alone, with other examples in each run (tests/laws.py)

Tests of hypothesis draw the same examples in each run, as a gate must be repeatable; others are for `--laws`, with so
many times the examples. `--fast` gives them a tenth of their examples, and runs tests with a parameter `seed` for its
least value only. In every run a test starts processes only if it is
listed here: otherwise it would be in the lane that computes, and in `make test-fast`.
"""

from __future__ import annotations

import gc
import importlib
import resource
import signal
import sys
import time
import unittest
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from sockpq import Client
from sockpq.testing import Server

from devcluster.node import LocalNode, execute
from tests.forkserver import Forkserver
from tests.lanes import LANES

ROOT = Path(__file__).parent

# Folders and files whose tests start processes, most of them whole clusters.
PROCESSES = (
    "bench", "chaos/test_clocks.py", "chaos/test_faults.py", "chaos/test_groups.py", "chaos/test_machines.py",
    "chaos/test_proxies.py",
    "chaos/test_pulses.py", "chaos/test_results.py", "chaos/test_scenarios.py", "chaos/test_workers.py",
    "beanstalk/test_cluster.py", "beanstalk/test_node.py", "beanstalk/test_program_and_another_cluster.py",
    "beanstalk/test_program_start.py",
    "browser", "deploy", "packaging", "hostile/test_runner.py",
    "proof/test_machines.py", "proof/test_short.py", "system", "upgrade",
    "client/test_against_sockpqd.py", "client/test_awaited_jobs.py", "client/test_cluster_map.py",
    "client/test_events.py", "client/test_examples.py", "client/test_faces.py", "client/test_find.py",
    "client/test_forks.py", "client/test_jobs_in_time.py",
    "client/test_leader_kills.py", "client/test_old_client.py", "client/test_readme.py", "client/test_testing.py",
    "client/test_two_clusters.py",
    "client/test_several_clusters.py", "client/test_several_takes.py", "client/test_several_kills.py",
    "client/test_takers_follow.py", "worker/flows/test_two_clusters.py",
    "beanstalk/test_two_clusters.py", "kombu/test_two_clusters.py",
    "http/test_breadth.py", "http/test_connections.py", "http/test_events.py", "http/test_families.py",
    "http/test_idempotency.py", "http/test_jobs.py", "http/test_page.py", "http/test_pages.py", "http/test_program.py",
    "http/test_schema.py", "http/test_takes.py", "http/test_tls.py", "http/test_two_clusters.py", "http/test_users.py",
    "core/laws/test_hash_seed.py", "client/test_consumer.py", "kombu/test_celery.py", "kombu/test_upstream.py",
    "kombu/test_transport.py", "kombu/test_event_loop.py", "kombu/test_access.py", "kombu/test_identity.py",
    "kombu/test_bad_messages.py", "kombu/test_batch.py", "kombu/test_close.py", "kombu/test_features.py",
    "kombu/test_queue_order.py",
    "kombu/test_groups.py", "kombu/test_revoke.py", "kombu/test_chords.py",
    "dramatiq", "taskiq", "sqs/door/test_program.py", "sqs/door/test_users_of_the_cluster.py", "sqs/test_cluster.py",
    "http/push/test_delivery.py", "http/push/test_hostile_receivers.py", "http/push/test_program.py",
    "http/push/test_examples.py",
    "django/test_access.py", "django/test_admin.py", "django/test_backend.py", "django/test_once.py",
    "django/test_kills.py", "django/test_outage.py", "django/test_outbox.py",
    "django/test_page.py", "django/test_postgresql.py", "django/test_six.py", "django/test_worker.py",
    "gateway/process/test_log_writer.py", "gateway/process/test_logs.py", "gateway/process/test_restarts.py",
    "gateway/process/test_systemd.py",
    "gateway/server/test_half_open.py", "gateway/test_daemon.py", "gateway/test_dev_cluster.py",
    "gateway/test_users_of_a_node.py",
    "pqctl/test_all_clusters.py", "pqctl/test_bench.py", "pqctl/test_doctor.py", "pqctl/test_doctor_leases.py",
    "pqctl/test_emptying.py", "pqctl/test_events.py", "pqctl/test_job_ends.py",
    "pqctl/test_fair_shares.py", "pqctl/test_groups.py", "pqctl/test_items.py",
    "pqctl/test_hash.py", "pqctl/test_identity.py", "pqctl/test_import.py",
    "pqctl/test_jobs.py", "pqctl/test_map.py", "pqctl/test_scaling_page.py",
    "pqctl/test_missing.py", "pqctl/test_node.py", "pqctl/test_poison.py", "pqctl/test_pulses.py",
    "pqctl/test_queues.py", "pqctl/test_region.py", "pqctl/test_sessions.py", "pqctl/test_shell.py",
    "pqctl/test_signals.py", "pqctl/test_backups.py",
    "pqctl/test_status.py", "pqctl/test_streams.py", "pqctl/test_terminal.py", "pqctl/test_top.py",
    "pqctl/test_usage.py",
    "mutants/test_collected.py", "mutants/test_judging.py", "test_forkserver.py", "test_lanes.py",
    "test_new_option.py", "test_waiting.py",
    "worker/children/test_cancels.py", "worker/children/test_process_child.py", "worker/program/test_all_ends.py",
    "worker/program/test_page.py",
    "worker/program/test_two_clusters.py",
    "worker/program/test_cancelled.py", "worker/program/test_identity.py", "worker/program/test_kept_jobs.py",
    "worker/program/test_killed_leader.py", "worker/program/test_overview.py", "worker/program/test_pqworker.py",
    "worker/flows/test_killed_author.py", "worker/program/test_flows.py",
    "outbox/test_crash.py", "outbox/test_databases.py", "outbox/test_django.py", "outbox/test_inbox.py",
    "outbox/test_page.py",
    "outbox/test_program.py", "outbox/test_relay.py", "outbox/test_rights.py", "outbox/test_two_clusters.py",
    "outbox/test_worker.py",
)
# Those of them that are not in the lane `waiting`: so the three lanes of processes take about as long.
PROCESS_LANES = {
    "chaos": ("chaos", "django", "hostile", "kombu/test_celery.py", "taskiq", "upgrade", "worker"),
    "programs": ("bench", "client", "http", "kombu", "outbox", "pqctl", "sqs"),
}
# What takes long without any process: a test is listed here if it needs more than 0.5 s of processor time with --fast,
# and a file or function with many cases if all together need more than 1 s, or it is about clusters over minutes of
# simulated time. All quick tests together may need 90 s on a quiet machine.
LONG = (
    "chaos/test_beanstalkd_judge.py::test_a_load_at_a_true_server_accuses_nobody",
    "chaos/test_checker_mutants.py", "chaos/test_checker_speed.py", "proof/test_published.py",
    "core/laws/test_delayed_paging_laws.py::test_paging_shows_nowhere_with_delayed_jobs",
    "core/laws/test_delayed_paging_laws.py::test_paging_shows_nowhere_with_delayed_jobs_and_pages_of_every_day",
    "cluster/test_disk_handover.py", "cluster/test_full_disks.py", "cluster/test_hazards.py",
    "cluster/test_journal_tears.py", "cluster/test_limits_of_commands.py", "cluster/test_log_feed.py",
    "cluster/test_mirroring.py", "cluster/test_named_pages.py", "cluster/test_random_faults.py",
    "cluster/test_real_files.py", "cluster/test_slow_disks.py",
    "model/test_comparison.py", "model/test_model.py::test_a_mistake_breaks_a_promise",
    "model/test_model.py::test_all_states_keep_the_promises",
    "sim/test_cures.py", "sim/test_digest.py", "sim/test_faults.py", "sim/test_group_laws.py", "sim/test_repeatable.py",
    "sim/test_scenarios.py", "sim/test_seeds.py", "sim/gateway/test_awaited.py", "sim/gateway/test_pulses.py",
    "sim/clusters/test_moves.py", "sim/clusters/test_two_clusters.py", "sim/regions", "sim/test_preference.py",
    "cluster/test_preference.py",
    "client/test_batches.py::test_many_jobs_are_put_in_order",
    "client/test_aio.py::test_tasks_share_a_client",
    "client/test_unknown.py::test_half_a_command_is_not_executed_and_not_unknown",
    "cluster/test_compaction.py::test_one_node_after_the_other_writes_a_snapshot",
    "cluster/test_client_queues.py::test_a_client_that_comes_is_served_by_the_next_entry_however_much_others_pipeline",
    "cluster/test_proposer.py::test_no_number_of_legal_commands_makes_an_entry_too_large",
    "cluster/test_scrubber.py::test_what_is_damaged_is_written_anew_and_removed",
    "cluster/test_small_cluster.py::test_a_dead_leader_is_replaced_early_and_a_silent_one_within_a_second_and_a_half",
    "cluster/test_transfer_interrupted.py::test_a_transfer_interrupted_at_any_point_starts_again",
    "cluster/test_watermarks.py::test_memory_is_given_back_while_its_mark_is_reached",
    "core/handlers/test_work.py",
    "core/handlers/test_sessions.py::test_to_look_at_many_sessions_that_go_on_costs_little",
    "core/laws/test_group_paging_laws.py::test_pages_of_groups_show_nowhere",
    "core/laws/test_mirror_laws.py::test_pages_of_a_mirror_show_nowhere",
    "core/test_group_steps.py::test_a_job_costs_little_more_however_many_there_are",
    "core/laws/test_find_laws.py::test_a_job_that_stays_is_shown_once_while_others_move",
    "core/laws/test_find_laws.py::test_pages_show_what_the_model_finds",
    "core/laws/test_item_laws.py::test_the_law_is_broken_without",
    "core/laws/test_laws.py::test_machine_equals_reference_model_over_a_long_log",
    "core/laws/test_laws.py::test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log",
    "core/laws/test_numbered_paging_laws.py::test_paging_shows_nowhere_with_numbered_jobs",
    "core/laws/test_numbered_queue_laws.py::test_jobs_have_numbers_and_all_else_is_as_without",
    "core/laws/test_paging_laws.py::test_paging_shows_nowhere_in_a_long_log",
    "core/laws/test_paging_laws.py::test_paging_shows_nowhere_in_deep_queues",
    "core/laws/test_paging_laws.py::test_paging_shows_nowhere_in_queues_that_several_groups_share",
    "core/laws/test_paging_laws.py::test_paging_shows_nowhere_with_the_stages_and_blocks_of_every_day",
    "core/laws/test_portion_laws.py::test_paging_shows_nowhere_in_what_is_done_in_portions",
    "core/laws/test_record_laws.py",
    "core/laws/test_session_laws.py::test_machine_equals_reference_model_over_a_long_log",
    "core/laws/test_time_laws.py::test_machine_equals_reference_model_over_a_long_log",
    "core/laws/test_time_laws.py::test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log",
    "core/rules/test_select.py::test_weights_of_1_and_3_with_limits_hold_both",
    "core/test_weights.py::test_shares_are_as_the_weights_say_over_ten_thousand_hand_outs",
    "core/rules/test_activate.py::test_a_hundred_thousand_queues_have_settings",
    "core/sessions/test_owners.py::test_111_sessions_a_second_for_half_an_hour_do_no_harm",
    "core/sessions/test_owners.py::test_a_restored_machine_takes_the_same_ones",
    "core/snapshot/test_snapshot.py::test_every_flipped_bit_is_refused",
    "core/store/test_retained_keys.py::test_keys_are_forgotten_as_fast_as_they_are_remembered",
    "gateway/commands/test_costs.py::test_no_command_takes_long_in_a_turn",
    "gateway/dashboard/test_portions.py",
    "gateway/protocol/test_grammar.py::test_get_reads_exactly_what_the_original_grammar_forms",
    "gateway/protocol/test_grammar.py::test_get_reads_new_words_behind_explicit_queues_only",
    "gateway/protocol/test_grammar.py::test_put_reads_exactly_what_the_original_grammar_forms",
    "gateway/protocol/test_reasons.py::test_every_verb_gives_a_reason_for_any_bad_arguments",
    "gateway/protocol/test_puts_reader.py::test_memory_is_bounded_while_it_arrives",
    "gateway/server/test_flow.py::test_small_reads_are_not_counted",
    "gateway/waiting/test_job_waiters.py::test_a_hand_off_among_thousands_of_waiters_costs_no_more_than_among_ten",
    "gateway/waiting/test_job_waiters.py::test_a_job_that_comes_back_finds_the_waiter_for_its_item_at_once_among_very_many",
    "sim/gateway/test_story.py",
    "sim/test_checks.py::test_a_client_that_is_never_answered", "sim/test_checks.py::test_a_removed_node_that_disturbs",
    "worker/pool/test_pool.py::test_a_burst_grows_the_pool_at_once_and_an_empty_queue_shrinks_it_after_the_keepalive",
    "worker/pool/test_pool.py::test_held_jobs_never_exceed_slots_times_prefetch_and_rotation_is_even",
    "worker/test_cron_times.py::test_every_time_of_a_year_comes_once_and_in_order",
)

EXAMPLES_SHARE = 10         # with --fast hypothesis draws one example of so many, and no fewer than so many
EXAMPLES_MIN = 10
LAW_TIMEOUT_S = 900         # of a law: hypothesis may take 300 s for simplifying a failure before it reports it
GC_OBJECTS = 20_000         # so many new ones are worth a look
GROWN_BYTES = 64 << 20      # by so much a process may grow before everything is looked at
FAST_MAX_S = 2.0            # four times what is allowed: slow and busy machines need more for the same

# What Python reports when another program is started; a fork alone, as in tests of forked clients, costs little.
PROCESS_EVENTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system"})

_forbidding = False         # processes, at present
_resident = 0               # bytes of this process when everything was last looked at


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options --fast and --laws."""
    parser.addoption("--fast", action="store_true", help="small budgets for tests with random input, and no processes")
    parser.addoption("--laws", type=float, metavar="N", help="tests of hypothesis alone, with N times their examples")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse lists that have become wrong; say how examples are drawn; watch for processes that are started."""
    check_lists()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:       # behind a shell's "&"; programs would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The clock judges no example, and not how fast they are drawn: a busy machine would fail good code.
    unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("gate", unhurried, derandomize=True, database=None)
    # where CI is set hypothesis itself derandomizes, and each round of a campaign would draw the same
    settings.register_profile("laws", unhurried, derandomize=False, print_blob=True)
    settings.load_profile("gate" if config.getoption("--laws") is None else "laws")
    if config.getoption("--laws") is None:
        draw_no_constants()
    sys.addaudithook(_forbid_processes)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is not run: with --fast, and in a lane of which no test is in a file or folder."""
    if not collection_path.is_relative_to(ROOT):
        return None
    place = collection_path.relative_to(ROOT).as_posix()
    if config.getoption("--fast"):
        return _listed(place, (*PROCESSES, *LONG)) or None
    chosen = config.getoption("-m")
    if chosen in LANES.values() and (collection_path.suffix == ".py" or _listed(place, PROCESSES)):
        return LANES[_lane(place)] != chosen or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Thousands of tests are collected and stay: looking for garbage among them, now and later, is a waste.

    Later it is looked for less often than Python does by itself: what tests make mostly ends with them.
    """
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GC_OBJECTS, 20, 20)
        gc.enable()


def import_share(config: pytest.Config) -> None:
    """Import every n-th test file before the others, in each of n workers of pytest-xdist.

    In a fresh clone, pytest rewrites each file, which takes longer than all else of the collection, and keeps it for
    later runs. Workers that all begin with the first file would each rewrite all of them at the same time.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    files = [path for folder in config.args for path in sorted(config.rootpath.joinpath(folder).rglob("test_*.py"))]
    for path in files[int(worker["workerid"].removeprefix("gw"))::worker["workercount"]]:
        if not pytest_ignore_collect(path, config):
            with suppress(Exception, pytest.skip.Exception):        # the collection reports it
                importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the markers, and say how many examples are drawn."""
    for item in items:
        place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
        lane = _lane(place)
        if lane != "cpu":
            item.add_marker(pytest.mark.processes)
        if lane in PROCESS_LANES:
            item.add_marker(lane)
        if _listed(place, LONG) or f"{place}::{getattr(item, 'originalname', item.name)}" in LONG:
            item.add_marker(pytest.mark.long)
        if config.getoption("--laws") is None and _law(item) is not None:
            item.add_marker(pytest.mark.timeout(LAW_TIMEOUT_S))
    if config.getoption("--fast"):
        draw(laws_among(items), 1 / EXAMPLES_SHARE)
        _keep_least_seeds(config, items)
    if (times := config.getoption("--laws")) is not None:
        config.hook.pytest_deselected(items=[item for item in items if _law(item) is None])
        items[:] = [item for item in items if _law(item) is not None]
        draw(laws_among(items), times)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let only a test that is listed start processes, from here to its end."""
    global _forbidding
    _forbidding = not any(map(item.get_closest_marker, ("processes", "long")))
    try:
        return (yield)
    finally:
        _forbidding = False
        collect_if_grown()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """With --fast: the test is quick, or it fails."""
    before = time.process_time()
    result = yield
    if item.config.getoption("--fast") and (spent_s := time.process_time() - before) > FAST_MAX_S:
        pytest.fail(f"{spent_s:.1f} s of processor time: above 0.5 s a test belongs in LONG of tests/conftest.py")
    return result


@pytest.fixture(scope="session", autouse=True)
def forkserver() -> Iterator[None]:
    """Nodes of clusters, and some other programs, start fast."""
    server, executed = Forkserver(), LocalNode.launch
    LocalNode.launch = staticmethod(server.launch)
    Forkserver.current = server
    yield
    LocalNode.launch = staticmethod(executed)
    server.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A real node for the tests of one file."""
    with Server() as server:
        yield server


@pytest.fixture
def own_client(own_server: Server) -> Iterator[Client]:
    """A client of that node."""
    with Client(own_server.address) as client:
        yield client


@pytest.fixture
def executed_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are children of this process, and their program is executed."""
    monkeypatch.setattr(LocalNode, "launch", staticmethod(execute))


def collect_if_grown() -> None:
    """Look for garbage when this process has grown: drivers in memory are few objects, and hold disks in cycles."""
    global _resident
    if resident_bytes() > _resident + GROWN_BYTES:
        gc.collect()
        _resident = resident_bytes()


def resident_bytes() -> int:
    """Return how much memory this process has."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()


def check_lists() -> None:
    """Raise pytest.UsageError when something listed is not there: its tests would be in the wrong lane, or in none."""
    missing = [place for place in (*PROCESSES, *LONG) if not _exists(*place.split("::"))]
    if missing:
        raise pytest.UsageError(f"listed in tests/conftest.py, and not there: {', '.join(missing)}")
    within = [
        place for places in PROCESS_LANES.values() for place in places
        if any(place.startswith(f"{folder}/") for folder in PROCESSES)
    ]
    if within:      # other lanes do not even look into that folder
        raise pytest.UsageError(f"in PROCESS_LANES, and within a folder of PROCESSES: {', '.join(within)}")


def draw(laws: Iterable[Any], times: float) -> None:
    """Let these draw this many times their examples: functions under @given, and test cases of state machines."""
    for law in laws:
        if isinstance(law, type):
            law.settings = _more(law.settings, times)
        else:       # there is no public way: a decorator's settings take precedence over any profile
            law._hypothesis_internal_use_settings = _more(law._hypothesis_internal_use_settings, times)


def draw_no_constants() -> None:
    """Let hypothesis draw none of the constants that it reads in the modules of this process.

    A law would have other examples alone than among all tests, and a failure could not be repeated. No setting does it.
    """
    providers._get_local_constants = providers.Constants


def _keep_least_seeds(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect a test if the same function has a lesser seed."""
    seeds: dict[str, list[int]] = {}
    for item in items:
        seeds.setdefault(_function(item), []).append(_seed(item))
    more = {item for item in items if _seed(item) > min(seeds[_function(item)])}
    config.hook.pytest_deselected(items=[*more])
    items[:] = [item for item in items if item not in more]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _seed(item: Any) -> int:
    """Return the parameter of this name, 0 if there is none."""
    seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
    return seed if isinstance(seed, int) else 0


def laws_among(items: Iterable[Any]) -> set[Any]:
    """Return what of hypothesis is behind the items, each once."""
    return {law for item in items if (law := _law(item)) is not None}


def _law(item: Any) -> Any:
    """Return what of hypothesis is behind the item, or None."""
    if issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
        return item.cls
    return item.obj if is_hypothesis_test(getattr(item, "obj", None)) else None


def _more(budget: settings, times: float) -> settings:
    return settings(budget, max_examples=max(EXAMPLES_MIN, int(budget.max_examples * times)))


@cache
def _lane(place: str) -> str:
    """Return in which lane a file is."""
    if not _listed(place, PROCESSES):
        return "cpu"
    return next((lane for lane, places in PROCESS_LANES.items() if _listed(place, places)), "waiting")


@cache            # a file has many tests
def _listed(place: str, places: tuple[str, ...]) -> bool:
    return any(place == one or place.startswith(f"{one}/") for one in places)


def _exists(place: str, test: str = "") -> bool:
    path = ROOT / place
    return path.exists() and (not test or f"\ndef {test}(" in path.read_text("utf-8"))


def _forbid_processes(event: str, arguments: Any) -> None:
    if _forbidding and event in PROCESS_EVENTS:
        raise RuntimeError(f"{event}{arguments} in a test that is not in PROCESSES or LONG of tests/conftest.py")
