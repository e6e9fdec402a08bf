"""Users who sign requests act as themselves in the cluster, which decides what each may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.exceptions
import pytest

from devcluster.cluster import LocalCluster
from tests.sqs.door.doors import send
from tests.sqs.door.programs import Program
from tests.waiting import until

FRONT = "the-secret-of-the-front-end"
SECRETS = {name: f"the-secret-of-{name}-0123456789" for name in ("owner", "sender", "receiver", "nobody")}
RIGHTS = {
    "front": '["put", "get", "queue"]', "owner": '["put:shop.*", "get:shop.*", "queue:shop.*"]',
    "sender": '["put:shop.*"]', "receiver": '["get:shop.*"]',
}
SETTINGS = """\
[cluster]
user = "front"
secret_file = "{folder}/front.secret"
[users]
file = "{folder}/users.toml"
[sqs]
account = "111122223333"
[sqs.accounts]
111122223333 = "shop."
000000000000 = ""
"""


def write_secretly(path: Path, text: str) -> None:
    path.touch(0o600)
    path.write_text(text)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("sqs")
    write_secretly(folder / "front.secret", FRONT)
    write_secretly(folder / "users.toml", "".join(
        f'[users.{name}]\nsecret = "{secret}"\n' for name, secret in SECRETS.items()))
    (folder / "settings.toml").write_text(SETTINGS.format(folder=folder))
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        users = cluster.folder / "users.toml"
        write_secretly(users, "".join(
            f'[users.{user}]\nrights = {rights}\nkey = "{SECRETS.get(user, FRONT).encode().hex()}"\n'
            for user, rights in RIGHTS.items()))
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name, wait=False)
        program = Program(cluster.server(name), "--config", str(folder / "settings.toml"))
        try:
            yield program
        finally:
            assert program.end() == 0
        assert "Traceback" not in program.log
        assert not any(secret in program.log for secret in SECRETS.values())


@pytest.fixture(scope="module")
def url(program: Program) -> str:
    until(lambda: send(f"{program.url}/readyz", "GET", b"", {})[0] == 200)
    found: str = program.sqs("owner", SECRETS["owner"]).create_queue(QueueName="orders")["QueueUrl"]
    return found


def refused(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    code: str = caught.value.response["Error"]["Code"]
    return code


def test_each_user_does_what_its_rights_allow(program: Program, url: str) -> None:
    assert url == f"{program.url}/111122223333/orders"
    owner, sender, receiver = (program.sqs(name, SECRETS[name]) for name in ("owner", "sender", "receiver"))
    sender.send_message(QueueUrl=url, MessageBody="1")
    assert refused(sender.receive_message, QueueUrl=url) == "AccessDenied"
    message, = receiver.receive_message(
        QueueUrl=url, WaitTimeSeconds=20, AttributeNames=["SenderId"])["Messages"]
    assert (message["Body"], message["Attributes"]["SenderId"]) == ("1", "sender")
    receiver.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60)
    assert refused(sender.delete_message, QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]) == "AccessDenied"
    receiver.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert refused(receiver.send_message, QueueUrl=url, MessageBody="2") == "AccessDenied"
    for other in (sender, receiver):
        assert refused(other.purge_queue, QueueUrl=url) == "AccessDenied"
        assert refused(other.delete_queue, QueueUrl=url) == "AccessDenied"
        assert refused(other.set_queue_attributes, QueueUrl=url, Attributes={"DelaySeconds": "1"}) == "AccessDenied"
        assert refused(other.tag_queue, QueueUrl=url, Tags={"k": "v"}) == "AccessDenied"
        assert refused(other.create_queue, QueueName="mine") == "AccessDenied"
    owner.tag_queue(QueueUrl=url, Tags={"k": "v"})
    assert owner.list_queue_tags(QueueUrl=url)["Tags"] == {"k": "v"}
    assert owner.list_queues()["QueueUrls"] == [url]


def test_queues_of_other_accounts_are_others(program: Program, url: str) -> None:
    owner = program.sqs("owner", SECRETS["owner"])
    assert refused(owner.send_message, QueueUrl=url.replace("111122223333", "000000000000"), MessageBody="x") == (
        "AWS.SimpleQueueService.NonExistentQueue")


def test_who_is_no_user_of_the_cluster_is_refused(program: Program, url: str) -> None:
    nobody = program.sqs("nobody", SECRETS["nobody"])
    assert refused(nobody.send_message, QueueUrl=url, MessageBody="x") == "InvalidClientTokenId"
