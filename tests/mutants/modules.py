"""The modules that are mutated, and the tests of each: in one process, the quickest first."""

from __future__ import annotations

_JOURNAL = (
    "test_journal", "test_next_segment", "test_background_sync", "test_end_of_log", "test_newer_formats",
    "test_found_by_review", "test_file_check", "test_scrubber", "test_journal_model", "test_journal_tears",
)
_CLUSTER = (
    "test_small_cluster", "test_steady_lane", "test_admission", "test_leases_of_leaders", "test_found_by_review",
    "test_membership", "test_hazards", "test_following", "test_idle",
)
_TESTS: dict[str, tuple[str, ...]] = {
    "cluster/journal/archived_segments.py": ("test_archived_segments", "test_log_feed"),
    "cluster/journal/journal.py": (*_JOURNAL, "test_overlapping", "test_rejoin", "test_snapshots"),
    "cluster/journal/journal_format.py": ("test_journal_format", *_JOURNAL),
    "cluster/journal/journal_state.py": ("test_journal_state", *_JOURNAL, "test_compaction"),
    "cluster/journal/log_cache.py": ("test_log_sequences", *_JOURNAL),
    "cluster/journal/log_index.py": ("test_log_sequences", *_JOURNAL),
    "cluster/journal/log_view.py": ("test_log_sequences", *_JOURNAL),
    "cluster/journal/segment_head.py": ("test_archived_segments", "test_log_feed", *_JOURNAL),
    "cluster/journal/segment_scan.py": ("test_segment_scan", *_JOURNAL),
    "cluster/journal/segments.py": ("test_segments", *_JOURNAL, "test_real_files", "test_removal_beside"),
    "cluster/leader/clock.py": ("test_replicated_time", "test_clock"),
    "cluster/leader/handover.py": ("test_handover", *_CLUSTER, "test_compaction"),
    "cluster/leader/leadership.py": ("test_leadership", *_CLUSTER, "test_driver", "test_clock", "test_full_disks"),
    "cluster/leader/membership.py": ("test_membership_conditions", "test_membership", "test_feature_levels", *_CLUSTER),
    "cluster/raft/append_entries.py": (
        "test_append_conditions", *_CLUSTER, "test_driver", "test_full_disks", "test_transfer_interrupted",
    ),
    "cluster/raft/elections.py": ("test_elections", *_CLUSTER),
    "cluster/raft/lease.py": ("test_promises", "test_lease", *_CLUSTER),
    "cluster/raft/peer.py": ("test_append_conditions", "test_transport", "test_elections", *_CLUSTER),
    "cluster/raft/pysyncobj_adapter.py": ("test_pysyncobj_adapter", *_CLUSTER, "test_proposer", "test_compaction"),
    "cluster/raft/quorum.py": ("test_quorum", *_CLUSTER, "test_overlapping"),
    "cluster/raft/replica_check.py": ("test_replica_check", "test_state_hash", "test_exit_codes"),
    "cluster/raft/snapshot_transfer.py": (
        "test_snapshot_transfer", "test_hazards", "test_transfer_interrupted", "test_full_disks", *_CLUSTER,
    ),
    "cluster/raft/steady_lane.py": (
        "test_lane_conditions", "test_steady_lane", "test_overlapping", *_CLUSTER, "test_full_disks",
    ),
    "cluster/raft/transport.py": ("test_transport", *_CLUSTER, "test_driver"),
    "cluster/raft/voter_admission.py": ("test_voter_admission", "test_founding", *_CLUSTER),
    "cluster/raft/voting_right.py": ("test_voting_right", *_CLUSTER),
    "cluster/syncing.py": (
        "test_syncing", "test_driver", "test_background_sync", "test_overlapping", "test_slow_disks", "test_idle",
    ),
}
MODULES = {
    module: tuple(dict.fromkeys(f"tests/cluster/{name}.py" for name in names)) for module, names in _TESTS.items()
}
