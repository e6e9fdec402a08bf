"""Finds mistakes across settings that are each valid: reported by --check-config, not at a start.

Nothing is asked over the network.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sockpqd.gateway.config import Config, ConfigError, split_address
from sockpqd.gateway.process.certificates import DAY_S, WARNING_DAYS, Certificates

STATE_FOLDER = Path("/var/lib")     # where systemd makes folders for services (StateDirectory=)


def warnings(config: Config, certificates: Certificates | None) -> Iterator[str]:
    """Yield a sentence for each thing that is probably wrong. Raises ConfigError if something certainly is."""
    yield from _files(config)
    _check_origin(config)
    yield from _swapped_ports(config)
    if certificates is not None:
        yield from _certificates(config, certificates)


def check_data_dir(data_dir: str) -> None:
    """Raise ConfigError if there is something else in the place of the data directory."""
    for place in (folder := Path(data_dir), *folder.parents):
        if os.path.exists(place) and not os.path.isdir(place):     # False, too, where this user may not look
            raise ConfigError(f"node.data_dir: {place} is a file: name a folder, which the node makes if there is none")


def _files(config: Config) -> Iterator[str]:
    """Look at the folder and the file that the node writes. Raises ConfigError if they certainly cannot be used."""
    check_data_dir(config.node.data_dir)
    yield from _unusable_data_dir(Path(config.node.data_dir).absolute())
    if config.log.audit_file is None:
        return
    file = Path(config.log.audit_file).absolute()
    if os.path.isdir(file):
        raise ConfigError(f"log.audit_file: {file} is a folder: name a file in it")
    if not os.path.isdir(file.parent):
        yield f"log.audit_file: there is no folder {file.parent}: make it, unless systemd does (LogsDirectory=)"
    elif not os.access(file if os.path.exists(file) else file.parent, os.W_OK):
        raise ConfigError(f"log.audit_file: {file} cannot be written by the user that runs this check")


def _unusable_data_dir(folder: Path) -> Iterator[str]:
    """Find out whether this user may write to the data directory, or make it. Raises ConfigError if not.

    Where systemd may make it at the start that is a warning.
    """
    place = next(one for one in (folder, *folder.parents) if os.path.isdir(one))
    if os.access(place, os.W_OK | os.X_OK | (os.R_OK if place == folder else 0)):
        return
    if place == folder:
        raise ConfigError(f"node.data_dir: {folder} cannot be written by the user that runs this check: give it to the "
                          "user of the node, and run the check as that user")
    trouble = f"node.data_dir: {folder} cannot be made in {place} by the user that runs this check"
    if place != STATE_FOLDER:
        raise ConfigError(f"{trouble}: make it, give it to the user of the node, and run the check as that user")
    yield f"{trouble}: make it, unless systemd does (StateDirectory=)"


def _check_origin(config: Config) -> None:
    """Refuse a replica of itself. A promoted cluster may have taken over the addresses of its origin, and starts."""
    own = {split_address(config.listen.client): "the client port of this node",
           split_address(config.listen.peer): "the port of this node for other nodes"}
    for member in config.cluster.members:
        own[split_address(member.client)] = f"the client port of {member.name}, a node of this cluster"
        own[split_address(member.peer)] = f"the port of {member.name} for other nodes"
    for address in filter(None, (one.strip() for one in config.replica.of.split(","))):
        if found := own.get(split_address(address)):
            raise ConfigError(f"replica.of: {address} is {found}: name the client ports of the origin, which is another"
                              " cluster; one that was promoted needs no [replica] any more")


def _swapped_ports(config: Config) -> Iterator[str]:
    """Compare the ports of the members with those of this node. Raises ConfigError if its own are swapped."""
    def ports(client: str, peer: str) -> tuple[int, int]:
        return split_address(client)[1], split_address(peer)[1]

    listen = ports(config.listen.client, config.listen.peer)
    for index, member in enumerate(config.cluster.members):
        client, peer = ports(member.client, member.peer)
        if client == peer or (peer, client) != listen:
            continue
        key = f"cluster.members[{index}]"
        if member.name == config.node.name:
            raise ConfigError(f"{key}: client and peer are swapped: this node listens on port {listen[0]} for clients"
                              f" and on {listen[1]} for other nodes")
        yield (f"{key}: {member.name} has port {client} for clients and {peer} for other nodes, the other way round"
               " than this node: swap them if that is not meant")


def _certificates(config: Config, certificates: Certificates) -> Iterator[str]:
    for key, expiry in certificates.expiries.items():
        left = expiry - time.time()
        if left < WARNING_DAYS * DAY_S:
            yield f"tls.{key}: it expires {_in_words(left)}: put a new one in its place"
    own = next(member for member in config.cluster.members if member.name == config.node.name)
    host = split_address(own.client)[0]
    if not any(_is_for(name, host) for name in certificates.names):
        key = "client_cert" if config.tls is not None and config.tls.client_cert is not None else "cert"
        yield (f"tls.{key}: it is for {', '.join(certificates.names) or 'no name'}, not for {host}, which clients dial:"
               " they will refuse this node. Make one for that address as well")


def _in_words(left_s: float) -> str:
    return f"in {left_s / DAY_S:.0f} days" if left_s > 2 * DAY_S else f"in {left_s / 3600:.1f} hours"


def _is_for(name: str, host: str) -> bool:
    """Return whether a name in a certificate stands for this host, by the rules of RFC 6125 for wildcards."""
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(host)
    except ValueError:
        pass
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    return name == host or (name.startswith("*.") and name[1:] == host[host.find("."):])
