"""RabbitMQ: a quorum queue on three nodes, publisher confirms, manual acknowledgements (which it never confirms).

RABBIT_ROOT names a folder with a system in which it is installed, when that is not the system of this machine:

    debootstrap --variant=minbase trixie ROOT && chroot ROOT apt-get install rabbitmq-server
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import amqp

from tests.proof.network import run
from tests.proof.peers.system import CALL_S, QUEUE, Hand, Lost, Refused, Server, System, Taken

ROOT = Path(os.environ.get("RABBIT_ROOT", "/"))
PROGRAMS = "/usr/lib/rabbitmq/bin"
PORT = 5672
COOKIE = "proof"
ERRORS = (amqp.AMQPError, OSError)          # a lost connection is an OSError, as is a time-out
POLL_S = 0.05
CONFIG = """
loopback_users = none
cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.target_cluster_size_hint = 3
log.file = false
log.console = true
"""


class RabbitMQ(System):
    """Three nodes, each of which serves all clients."""

    name = "RabbitMQ"

    def __init__(self) -> None:
        if Path("/") != ROOT:
            self.place = ROOT / "mnt"
            run(["mount", "-t", "proc", "proc", str(ROOT / "proc")])
            run(["mount", "--rbind", "/dev", str(ROOT / "dev")])

    def version(self) -> str:
        (place,) = (ROOT / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
        return place.name.partition("-")[2]

    def prepare(self, server: Server, servers: Sequence[Server]) -> None:
        lines = [f"cluster_formation.classic_config.nodes.{number} = {_node(one)}"
                 for number, one in enumerate(servers, 1)]
        (server.disk / "rabbitmq.conf").write_text(CONFIG + "\n".join(lines) + "\n", "utf-8")
        (server.disk / "plugins").write_text("[].\n")
        cookie = server.disk / ".erlang.cookie"
        cookie.write_text(COOKIE)
        cookie.chmod(0o400)

    def command(self, server: Server) -> tuple[Sequence[str], Mapping[str, str]]:
        place = self._inside(server.disk)
        return ["chroot", str(ROOT), f"{PROGRAMS}/rabbitmq-server"], {
            **self._shared(server), "RABBITMQ_CONFIG_FILE": f"{place}/rabbitmq", "RABBITMQ_LOG_BASE": f"{place}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place}/plugins", "RABBITMQ_MNESIA_BASE": f"{place}/data",
            "RABBITMQ_NODE_IP_ADDRESS": server.address, "RABBITMQ_NODE_PORT": str(PORT),
        }

    def form(self, servers: Sequence[Server]) -> bool:
        if not all(map(self._listens, servers)):
            return False
        if self._control(servers[0], "eval", "length(rabbit_nodes:list_running()).") != str(len(servers)):
            return False
        try:
            hand = self.hand(servers[0])
        except Lost:
            return False
        assert isinstance(hand, _Channel)
        try:
            hand.declare()
        except ERRORS:
            return False
        finally:
            hand.close()
        return all(map(self.serves, servers))

    def hand(self, server: Server) -> Hand:
        return _Channel(server.address)

    def is_level(self, hand: Hand) -> bool:
        assert isinstance(hand, _Channel)
        hand.left()
        return True

    def files(self, server: Server) -> Iterable[Path]:
        return [path for path in (server.disk / "data").rglob("quorum/**/*") if path.is_file()]

    def _listens(self, server: Server) -> bool:
        try:
            self.hand(server).close()
        except Lost:
            return False
        return True

    def _shared(self, server: Server) -> dict[str, str]:
        return {
            "HOME": self._inside(server.disk), "LC_ALL": "C.UTF-8", "RABBITMQ_USE_LONGNAME": "true",
            "RABBITMQ_NODENAME": _node(server), "RABBITMQ_CONF_ENV_FILE": os.devnull,
        }

    def _control(self, server: Server, *words: str) -> str:
        command = [*server.enter, "chroot", str(ROOT), f"{PROGRAMS}/rabbitmqctl", "-n", _node(server), *words]
        done = subprocess.run(
            command, env={**os.environ, **self._shared(server)}, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def _inside(self, path: Path) -> str:
        """Return the path as programs in ROOT see it."""
        return f"/{path.relative_to(ROOT)}"


def _node(server: Server) -> str:
    return f"rabbit@{server.address}"


class _Channel:
    def __init__(self, address: str) -> None:
        self._connection: Any = amqp.Connection(
            f"{address}:{PORT}", confirm_publish=True, connect_timeout=CALL_S, read_timeout=CALL_S,
            write_timeout=CALL_S)
        try:
            self._connection.connect()
            self._channel: Any = self._connection.channel()
        except ERRORS as error:
            self.close()
            raise Lost from error

    def declare(self) -> None:
        """Create the quorum queue."""
        self._channel.queue_declare(
            QUEUE, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum", "x-delivery-limit": -1})

    def left(self) -> int:
        """Return how many jobs wait; the answer comes when all that was sent before has been read."""
        try:
            return int(self._channel.queue_declare(QUEUE, passive=True).message_count)
        except ERRORS as error:
            raise Lost from error

    def put(self, job: str) -> None:
        try:
            self._channel.basic_publish_confirm(
                amqp.Message(job, delivery_mode=2), routing_key=QUEUE, mandatory=True, confirm_timeout=CALL_S)
        except amqp.exceptions.MessageNacked as error:
            raise Refused from error
        except ERRORS as error:
            raise Lost from error

    def take(self, wait_s: float) -> Taken | None:
        until = time.monotonic() + wait_s
        while True:
            try:
                message = self._channel.basic_get(QUEUE)
            except ERRORS as error:
                raise Lost from error
            if message is not None:
                return Taken(str(message.body), message.delivery_info["delivery_tag"])
            if time.monotonic() > until:
                return None
            time.sleep(POLL_S)

    def end(self, taken: Taken) -> None:
        try:
            self._channel.basic_ack(taken.token)
        except ERRORS as error:
            raise Lost from error
        self.left()

    def close(self) -> None:
        with contextlib.suppress(*ERRORS):
            self._connection.collect()          # without a word to the server, which may not answer
