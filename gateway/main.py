"""The command `sockpqd`: reads arguments and configuration, runs one node, and exits with a code that says why.

0: stopped in an orderly way. 2: invalid arguments or configuration. 70: the node had to stop itself, and another start
would not help. 75: the node had to stop itself, and another start may help (restarts.py).

Modules are imported where they are needed: importing the whole node takes much too long for --help.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sockpqd.gateway.config import Config

log = logging.getLogger("sockpqd")

EXIT_CONFIG = 2
EXIT_FAILED = 70
EXIT_START_AGAIN = 75           # EX_TEMPFAIL

NODES_MAX = 9                   # of a cluster for trying things out
CLUSTERS_MAX = 4                # likewise; each has a thousand ports, up to where ephemeral ones begin

DEFAULT_FILE = Path("/etc/sockpqd.toml")     # read when nothing else is asked for

CONFIG_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "config_file", type=CONFIG_FILE,
              help="Run the node that this TOML file describes.  [default: /etc/sockpqd.toml]")
@click.option("--check-config", "check_file", type=CONFIG_FILE, help="Check a configuration file and exit.")
@click.option("--check-data", "data_dir", type=click.Path(path_type=Path, file_okay=False, exists=True),
              help="Read the journal and the snapshots in the data directory of a node, which may run, and the pages "
                   "of jobs that they name; with --check-config, also compare the size of the disk with what these "
                   "settings need; print a JSON object for each finding, as pqctl doctor needs it, and exit.")
@click.option("--dev", "as_dev", is_flag=True, help="Run a node alone on loopback, its data in ./sockpqd-dev.")
@click.option("--nodes", type=click.IntRange(1, NODES_MAX), default=1, metavar="N",
              help="With --dev: run a cluster of N nodes, in ./sockpqd-dev-N. Ctrl-C ends it and keeps its data.")
@click.option("--clusters", type=click.IntRange(1, CLUSTERS_MAX), default=1, metavar="K",
              help="With --dev: run K such clusters, named a, b, .., which programs use as one, in ./sockpqd-dev-NxK.")
@click.option("--hash-secret", "as_hash", is_flag=True,
              help="Read a user's secret from the terminal or standard input and print its hash, the value of `scrypt`"
                   " in the users file.")
@click.option("--bootstrap", is_flag=True,
              help="Found a new cluster although not every member says that it is empty; if one is not, jobs are lost.")
@click.version_option(package_name="sockpqd", prog_name="sockpqd")
def main(
    config_file: Path | None, check_file: Path | None, data_dir: Path | None, as_dev: bool, nodes: int, clusters: int,
    as_hash: bool, bootstrap: bool,
) -> None:
    """One node of a replicated priority job queue."""
    checks = check_file is not None or data_dir is not None
    chosen = sum((config_file is not None, checks, as_dev, as_hash))
    if chosen > 1:
        raise click.UsageError(
            "give one of --config FILE, --check-config FILE, --check-data DIR, --hash-secret and --dev")
    if not chosen:
        if not DEFAULT_FILE.exists():
            raise click.UsageError(f"there is no {DEFAULT_FILE}: give --config FILE, or --dev to try things out")
        config_file = DEFAULT_FILE
    if max(nodes, clusters) > 1 and (not as_dev or bootstrap):
        raise click.UsageError("--nodes and --clusters go with --dev only")
    if as_hash:
        print(_hashed(_secret()))
        return
    from sockpqd.gateway.config import ConfigError

    try:
        if max(nodes, clusters) > 1:
            from sockpqd.gateway.dev import cluster

            sys.exit(cluster.run(Path.cwd(), nodes, clusters))
        if data_dir is not None:
            print(_checked(data_dir, check_file))
            return
        config = _config(config_file or check_file)
        if check_file is not None:
            _check_origin(config)
            _check_surroundings(config)
            _check_disk(config)
            print(f"{check_file}: good; node {config.node.name} of {len(config.cluster.members)}")
        else:
            _run(config, as_dev=as_dev, bootstrap=bootstrap)
    except ConfigError as error:
        print(f"sockpqd: {error}", file=sys.stderr)
        sys.exit(EXIT_CONFIG)


def _run(config: Config, *, as_dev: bool, bootstrap: bool) -> None:
    """Run the node until it is stopped; exits if it had to stop itself. Raises ConfigError before anything started."""
    import uvloop

    from sockpqd.gateway.config import ConfigError
    from sockpqd.gateway.daemon import NodeFailed, run
    from sockpqd.gateway.dev import alone
    from sockpqd.gateway.process.logs import Logs
    from sockpqd.gateway.process.restarts import Restarts

    logs = Logs(config.log, config.node.name)
    logs.start()
    atexit.register(logs.close)         # on every exit, including by an uncaught error
    if bootstrap:
        log.warning("--bootstrap: this node takes part in elections without asking the others whether they know more. "
                    "Start it without this option from now on.")
    restarts = Restarts(Path(config.node.data_dir) / "restarts")
    try:
        uvloop.run(run(config, logs, restarts, bootstrap=bootstrap, announce=alone.announce if as_dev else None))
    except ConfigError as error:
        log.critical("%s", error)
        sys.exit(EXIT_CONFIG)
    except NodeFailed as error:
        log.critical("%s", error)
        if not error.cured_by_restart:
            sys.exit(EXIT_FAILED)
        if error.counts:
            restarts.failed()
        sys.exit(EXIT_START_AGAIN)
    except Exception:
        log.critical("the node failed: report it, with this line", exc_info=True)
        restarts.failed()
        sys.exit(EXIT_START_AGAIN)


def _config(file: Path | None) -> Config:
    """Return the configuration, having checked the files it names; raises ConfigError."""
    from sockpqd.gateway.auth.users_file import users_of
    from sockpqd.gateway.config import load
    from sockpqd.gateway.dev import alone
    from sockpqd.gateway.process.certificates import Certificates

    config = alone.configuration(Path.cwd(), os.environ) if file is None else load(file, os.environ)
    if config.tls is not None:
        Certificates(config.tls, config.node.name)
    users_of(config)
    return config


def _hashed(secret: str) -> str:
    """Print the form of a secret that the users file needs."""
    from sockpqd.gateway.auth import scrypt

    return scrypt.hashed(secret).text


def _check_origin(config: Config) -> None:
    """Raise ConfigError if the files of [replica] cannot be used; a node that was promoted starts without them."""
    from sockpqd.gateway.replica import origin_settings

    origin_settings(config.replica)


def _check_surroundings(config: Config) -> None:
    """Warn about what is probably wrong on this machine; raises ConfigError if something certainly is."""
    from sockpqd.gateway.process.certificates import Certificates
    from sockpqd.gateway.process.configuration_check import warnings

    certificates = None if config.tls is None else Certificates(config.tls, config.node.name)
    for warning in warnings(config, certificates):
        print(f"sockpqd: warning: {warning}", file=sys.stderr)


def _check_disk(config: Config) -> None:
    """Warn about a disk that is small for the configuration; raises ConfigError if it is too small."""
    from sockpqd.gateway.config import ConfigError
    from sockpqd.gateway.process.disk_size import FAIL, WARN, disk_check

    try:
        check = disk_check(Path(config.node.data_dir), config.limits, config.feed.keep_bytes)
    except OSError as error:
        raise ConfigError(f"node.data_dir: {error}") from error
    if check.state == FAIL:
        raise ConfigError(f"node.data_dir: {check.found}; {check.advice}")
    if check.state == WARN:
        print(f"sockpqd: warning: node.data_dir: {check.found}; {check.advice}", file=sys.stderr)


def _checked(data_dir: Path, check_file: Path | None) -> str:
    """Check the files and the disk of a node; prints a JSON object on each line. Raises ConfigError."""
    from sockpqd.cluster import check_data
    from sockpqd.gateway.process.disk_size import disk_check

    config = None if check_file is None else _config(check_file)
    try:
        checks = check_data(data_dir)
        if config is not None:
            checks.append(disk_check(data_dir, config.limits, config.feed.keep_bytes))
    except OSError as error:
        raise click.UsageError(f"--check-data {data_dir}: {error.strerror or error}") from error
    return "\n".join(json.dumps(check._asdict()) for check in checks)


def _secret() -> str:
    """Read the secret, prompting twice on a terminal. It must be a single word, as AUTH cannot send anything else."""
    if sys.stdin.isatty():
        secret = str(click.prompt("Secret", hide_input=True, confirmation_prompt=True, err=True))
    else:
        try:
            secret = sys.stdin.buffer.readline().removesuffix(b"\n").decode()
        except UnicodeDecodeError:
            raise click.UsageError("a secret must be UTF-8") from None
    if not secret:
        raise click.UsageError("a secret is missing: it is one line of standard input")
    if secret.split() != [secret]:
        raise click.UsageError("a secret is one word, without spaces")
    return secret
