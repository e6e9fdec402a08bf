"""sqs.yml: the protocol of Amazon SQS as a service of a host, by the shipped role, with users and TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import trustme
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.deploy.installed import SHOP_SECRET, SQS_SECRET
from tests.deploy.service import WAIT_S, Service, install_program

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)

ACCOUNT = "111122223333"
PORT = 9324


class FrontEnd(Service):
    """sockpq-sqs on one host, with a certificate, and its clients."""

    def __init__(self, cluster: Installed) -> None:
        super().__init__(cluster, "sockpq-sqs")
        self._authority = trustme.CA()
        self.ca = cluster.folder / "sqs-ca.crt"
        self._authority.cert_pem.write_to_path(self.ca)
        self._certificate = self.issue()

    def install(self) -> None:
        """Put program and certificate where the role expects them, as a deployment does."""
        folder = install_program(self.machine, "sqs")
        shutil.copy(self.cluster.secrets / "ca.crt", folder / "ca.crt")
        self.say("chmod -R go+rX /opt/sockpq-sqs")

    def issue(self) -> dict[str, str]:
        """Make a certificate for the host; returns where it and its key are on this machine."""
        issued = self._authority.issue_cert(self.machine.address)
        cert, key = self.cluster.folder / "sqs.crt", self.cluster.folder / "sqs.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.touch(0o600)
        key.write_bytes(issued.private_key_pem.bytes())
        return {"cert": str(cert), "key": str(key)}

    def serial(self) -> str:
        """Return the number of the certificate that clients are shown."""
        trusting = ssl.create_default_context(cafile=str(self.ca))
        with (
            socket.create_connection((self.machine.address, PORT), timeout=WAIT_S) as plain,
            trusting.wrap_socket(plain, server_hostname=self.machine.address) as connection,
        ):
            found = connection.getpeercert()
            assert found
            return str(found["serialNumber"])

    def apply(self, secret: str = SHOP_SECRET, **more: Any) -> int:
        """Run sqs.yml; returns how many tasks changed something. `secret`: of the user."""
        return self.play("sqs", "sockpq_sqs", {
            "sockpq_sqs_servers": self.cluster.servers().split(","),
            "sockpq_sqs_listen": f"{self.machine.address}:{PORT}",
            "sockpq_sqs_cluster": {"ca": "/opt/sockpq-sqs/ca.crt", "user": "sqs"},
            "sockpq_sqs_cluster_secret": SQS_SECRET,
            "sockpq_sqs_users": {
                "shop": {"secret": secret, "account": ACCOUNT},
                "sqs": {"secret": SQS_SECRET, "account": "000000000000"},
            },
            "sockpq_sqs_certificate": self._certificate["cert"], "sockpq_sqs_key": self._certificate["key"],
            "sockpq_sqs_options": {"once": True, "accounts": {ACCOUNT: "shop.", "000000000000": ""}},
            **more,
        })

    def client(self, secret: str = SHOP_SECRET, user: str = "shop") -> Any:
        """Return an SDK's client, which checks the certificate."""
        return boto3.session.Session().client(
            "sqs", endpoint_url=f"https://{self.machine.address}:{PORT}", region_name="eu-west-1", verify=str(self.ca),
            aws_access_key_id=user, aws_secret_access_key=secret,
            config=Config(retries={"mode": "standard", "total_max_attempts": 30}, read_timeout=60, connect_timeout=5))


@pytest.fixture(scope="module")
def front(cluster: Installed) -> Iterator[FrontEnd]:
    made = FrontEnd(cluster)
    made.install()
    assert made.apply() > 0
    yield made
    made.say(f"systemctl disable --now {made.unit}")


def test_the_role_makes_a_service_for_sdks_and_a_second_run_changes_nothing(front: FrontEnd) -> None:
    sqs = front.client()
    orders = sqs.create_queue(QueueName="orders")["QueueUrl"]
    assert orders == f"https://{front.machine.address}:{PORT}/{ACCOUNT}/orders"
    sqs.send_message(QueueUrl=orders, MessageBody="17")
    (message,) = sqs.receive_message(QueueUrl=orders, WaitTimeSeconds=20)["Messages"]
    assert message["Body"] == "17"
    sqs.delete_message(QueueUrl=orders, ReceiptHandle=message["ReceiptHandle"])
    assert "shop.orders" in front.say("pqctl queue list")
    assert front.apply() == 0
    assert (front.show("ActiveState"), front.show("User")) == ("active", "sockpq-sqs")
    files = "/etc/sockpq-sqs.users.toml /etc/sockpq-sqs.secret /etc/sockpq-sqs.key"
    assert front.say(f"stat --format %U:%G:%a {files}").split() == ["sockpq-sqs:sockpq-sqs:600"] * 3
    assert front.say("stat --format %U:%G:%a /etc/sockpq-sqs.toml").split() == ["root:sockpq-sqs:640"]
    assert SHOP_SECRET not in front.log() + front.say("cat /etc/sockpq-sqs.toml")


def test_the_cluster_decides_what_a_user_may(front: FrontEnd) -> None:
    theirs = front.client(SQS_SECRET, "sqs").create_queue(QueueName="theirs")["QueueUrl"]
    with pytest.raises(ClientError, match="AccessDenied"):
        front.client().send_message(QueueUrl=theirs, MessageBody="not the shop's")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        front.client("another-secret-of-nobody").list_queues()


def test_users_are_read_again_without_a_restart(front: FrontEnd) -> None:
    pid = front.show("MainPID")
    assert front.apply("a-secret-that-the-cluster-does-not-know") > 0
    front.until(lambda: _code(front.client) == "SignatureDoesNotMatch")
    assert front.apply() > 0
    front.until(lambda: _code(front.client) == "")
    assert front.show("MainPID") == pid


def test_a_new_certificate_is_used_without_a_restart(front: FrontEnd) -> None:
    pid, serial = front.show("MainPID"), front.serial()
    front.issue()
    assert front.apply() == 1
    front.until(lambda: front.serial() != serial)
    assert front.show("MainPID") == pid


def test_a_program_that_is_killed_comes_back(front: FrontEnd) -> None:
    pid = front.show("MainPID")
    front.say(f"systemctl kill --kill-who=main -s KILL {front.unit}")
    assert front.client().list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert front.show("MainPID") not in ("0", pid)


def test_it_stops_in_order(front: FrontEnd) -> None:
    front.say(f"systemctl stop {front.unit}")
    assert (front.show("ActiveState"), front.show("Result")) == ("inactive", "success")
    assert front.apply() > 0
    front.until(lambda: _code(front.client) == "")


def test_settings_that_are_not_good_change_nothing(front: FrontEnd, cluster: Installed) -> None:
    import yaml  # comes with Ansible

    path = cluster.inventory / "sqs.yml"
    good = yaml.safe_load(path.read_text())
    good["sockpq_sqs"]["vars"]["sockpq_sqs_limits"] = {"nonsense": 1}
    path.write_text(yaml.safe_dump(good))
    pid = front.show("MainPID")
    run = cluster.playbook("sqs.yml", fails=True)
    assert "nonsense" in run.output
    assert "nonsense" not in front.say("cat /etc/sockpq-sqs.toml")
    assert (_code(front.client), front.show("MainPID")) == ("", pid)
    assert front.apply() == 0


def _code(client: Callable[[], Any]) -> str:
    """Return the name of the error of a request, "" for none."""
    try:
        client().list_queues()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""
