"""The configuration: what is wrong is named, key and reason."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sockpq_sqs.settings import Settings as SqsSettings

from sockpqd.cluster import NodeSettings
from sockpqd.connections import is_loopback
from sockpqd.gateway.config import (
    Auth,
    BeanstalkdSection,
    Config,
    ConfigError,
    FeedSection,
    GatewaySection,
    Listen,
    Log,
    Node,
    QueueSection,
    Raft,
    ReplicaSection,
    Tls,
    load,
    read,
    split_address,
)
from sockpqd.gateway.limits import MIB, Limits

SECTIONS = {
    "node": Node, "listen": Listen, "queue": QueueSection, "limits": Limits, "raft": Raft, "gateway": GatewaySection,
    "tls": Tls, "auth": Auth, "log": Log, "beanstalkd": BeanstalkdSection,
    "feed": FeedSection, "replica": ReplicaSection,
}

GOOD = """
[node]
name = "n1"
data_dir = "/var/lib/sockpqd"
[listen]
client = "127.0.0.1:11361"
peer = "127.0.0.1:11362"
http = "127.0.0.1:11363"
[[cluster.members]]
name = "n1"
client = "127.0.0.1:11361"
peer = "127.0.0.1:11362"
[[cluster.members]]
name = "n2"
client = "10.0.0.2:11361"
peer = "proxy.example:21362"
"""


TLS = {"cert": "n1.crt", "key": "n1.key", "ca": "ca.crt"}
USERS = {"users_file": "users.toml"}
FAR = "10.0.0.1:5"
LEGACY = {"address": FAR, "user": "old", "networks": ["10.0.0.0/24"]}


def document(text: str = "") -> dict[str, Any]:
    return tomllib.loads(GOOD + text)


def refusal(text: str = "", change: dict[str, Any] | None = None, environment: dict[str, str] | None = None) -> str:
    wanted = document(text)
    for path, value in (change or {}).items():
        *sections, key = path.split(".")
        table: Any = wanted
        for section in sections:
            table = table[int(section) if section.isdigit() else section]
        if value is None:
            del table[key]
        else:
            table[key] = value
    with pytest.raises(ConfigError) as caught:
        read(wanted, environment or {})
    return str(caught.value)


def test_a_good_file_is_read_with_defaults(tmp_path: Path) -> None:
    path = tmp_path / "n1.toml"
    path.write_text(GOOD)
    config = load(path, {})
    assert config.node.name == "n1"
    assert [member.name for member in config.cluster.members] == ["n1", "n2"]
    assert config.limits.data_bytes_max == 8 * MIB
    assert config.queue.expire_default == "later"
    assert config.gateway.offline_close


def test_every_section_can_be_set() -> None:
    config = read(document("""
        [queue]
        expire_default = "done"
        [limits]
        data_bytes_max = 100
        connections_max = 5
        [raft]
        heartbeat_ms = 10
        [gateway]
        offline_close = false
    """), {})
    assert config.queue.expire_default == "done"
    assert (config.limits.data_bytes_max, config.limits.connections_max) == (100, 5)
    assert config.raft.heartbeat_ms == 10
    assert not config.gateway.offline_close


def test_the_raft_defaults_are_those_of_the_cluster() -> None:
    defaults = {field.name: field.default for field in msgspec.structs.fields(NodeSettings)}
    assert {field.name: field.default for field in msgspec.structs.fields(Raft)}.items() <= defaults.items()


@pytest.mark.parametrize(("text", "change", "sentence"), [
    ("[nodes]\nx = 1", {}, "nodes: unknown key (is node meant?)"),
    ("[limits]\ndata_bytes = 1", {}, "limits.data_bytes: unknown key"),
    ("[raft]\nelection_ms = 1", {}, "raft.election_ms: unknown key"),
    ("", {"listen.pear": "x"}, "listen.pear: unknown key (is listen.peer meant?)"),
    ("", {"node.id": 1}, "node.id: unknown key"),
    ("", {"listen.https": "x"}, "listen.https: unknown key"),
    ("", {"cluster.members.1.weight": 1}, "cluster.members[1].weight: unknown key"),
    ("", {"node": None}, "node: this key is required"),
    ("", {"node.name": None}, "node.name: this key is required"),
    ("", {"listen.peer": None}, "listen.peer: this key is required"),
    ("", {"cluster": None}, "cluster: this key is required"),
    ("", {"cluster.members.0.peer": None}, "cluster.members[0].peer: this key is required"),
    ("", {"node.name": 5}, "node.name: expected str, got int"),
    ("[limits]\ndata_bytes_max = \"8M\"", {}, "limits.data_bytes_max: expected int, got str"),
    ("[gateway]\noffline_close = 1", {}, "gateway.offline_close: expected bool, got int"),
    ("", {"node.data_dir": ""}, "node.data_dir: must not be empty"),
    ("", {"cluster.members": []}, "cluster.members: must list every node, this one included"),
    ("", {"node.name": "n3"}, "node.name: 'n3' is not among cluster.members"),
    ("", {"cluster.members.1.name": "n1"}, "cluster.members[1].name: 'n1' is listed twice"),
    ("", {"cluster.members.1.name": "n 2"}, "cluster.members[1].name: 'n 2' must be"),
    ("", {"cluster.members.1.name": "n" * 65}, "cluster.members[1].name: "),
    ("", {"cluster.members.1.client": "10.0.0.2"}, "cluster.members[1].client: '10.0.0.2' is not host:port"),
    ("", {"cluster.members.1.peer": "10.0.0.2:0"}, "cluster.members[1].peer: '10.0.0.2:0' is not host:port"),
    ("", {"listen.client": ":11361"}, "listen.client: ':11361' is not host:port"),
    ("", {"listen.client": "127.0.0.1:99999"}, "listen.client: "),
    ("", {"listen.peer": "::1:11362"}, "listen.peer: "),
    ("", {"listen.client": "0.0.0.0:11361"}, "listen.client: '0.0.0.0:11361' is not a loopback address"),
    ("", {"listen.peer": "10.0.0.1:11362"}, "listen.peer: '10.0.0.1:11362' is not a loopback address"),
    ("", {"listen.http": "example.org:80"}, "listen.http: 'example.org:80' is not a loopback address"),
    ("", {"listen.peer": "127.0.0.1:11361"}, "listen.peer: '127.0.0.1:11361' is listen.client already"),
    ("", {"cluster.members.1.peer": "127.0.0.1:11362"},
     "cluster.members[1].peer: '127.0.0.1:11362' is cluster.members[0].peer already"),
    ("", {"cluster.members.1.client": "127.0.0.1:11361"},
     "cluster.members[1].client: '127.0.0.1:11361' is cluster.members[0].client already"),
    ("", {"cluster.members.1.peer": "10.0.0.2:11361"},
     "cluster.members[1].peer: '10.0.0.2:11361' is cluster.members[1].client already"),
    ("", {"node.data_dir": "a\0b"}, "node.data_dir: must not contain a NUL character"),
    ("", {"auth": {"users_file": "a\0b"}}, "auth.users_file: must not contain a NUL character"),
    ("", {"listen.legacy": [{**LEGACY, "user": "a\0b"}]}, "listen.legacy[0].user: must not contain a NUL character"),
    ("[queue]\nexpire_default = \"never\"", {}, "queue.expire_default: must be"),
    ("[limits]\ndata_bytes_max = 0", {}, "limits.data_bytes_max: must be from 1 to 8388608, not 0"),
    ("[limits]\ndata_bytes_max = 8388609", {}, "limits.data_bytes_max: must be from 1 to 8388608, not 8388609"),
    ("[limits]\nline_bytes_max = 10", {}, "limits.line_bytes_max: must be"),
    ("[limits]\nsnapshot_bytes_max = 0", {}, "limits.snapshot_bytes_max: must be"),
    ("[limits]\nconnections_max = 0", {}, "limits.connections_max: must be"),
    ("[limits]\nsessions_per_owner_max = 0", {}, "limits.sessions_per_owner_max: must be"),
    ("[limits]\nsessions_per_owner_max = 100001", {}, "limits.sessions_per_owner_max: must be"),
    ("[limits]\npipeline_bytes_max = -1", {}, "limits.pipeline_bytes_max: must be"),
    ("[limits]\noutput_bytes_max = 8388608", {}, "limits.output_bytes_max: must be"),
    ("[limits]\nmemory_mark = 1000\nhot_bytes = 1000", {}, "limits.hot_bytes: must be smaller than"),
    ("[raft]\nheartbeat_ms = 0", {}, "raft.heartbeat_ms: must be at least 1"),
    ("[raft]\nlease_ms = 5000", {}, "raft.lease_ms: must be smaller than raft.election_min_ms"),
    ("[raft]\nlease_ms = 50", {}, "raft.lease_ms: must be greater than raft.heartbeat_ms"),
    ("[raft]\nelection_max_ms = 600", {}, "raft.election_max_ms: must be greater than raft.election_min_ms"),
    ("[raft]\nfailover_grace_ms = -1", {}, "raft.failover_grace_ms: must be from 0 to 86400000, not -1"),
    ("[raft]\nfailover_grace_ms = 86400001", {}, "raft.failover_grace_ms: must be from 0 to 86400000"),
    ("[raft]\nelection_max_ms = 3600001", {}, "raft.election_max_ms: must be at most 3600000"),
    ("", {"listen.client": FAR, "tls": TLS}, f"listen.client: '{FAR}' is not a loopback address, and without auth"),
    ("", {"listen.peer": FAR, "auth": USERS}, f"listen.peer: '{FAR}' is not a loopback address, and without [tls]"),
    ("", {"listen.http": FAR, "tls": TLS}, f"listen.http: '{FAR}' is not a loopback address, and without auth"),
    ("", {"listen.http": FAR, "auth": USERS}, f"listen.http: '{FAR}' is not a loopback address"),
    ("", {"listen.legacy": [LEGACY]}, "listen.legacy[0]: acts as a user"),
    ("", {"auth": USERS, "listen.legacy": [{**LEGACY, "networks": []}]}, f"listen.legacy[0].address: '{FAR}' is not"),
    ("", {"listen.beanstalkd": ":11300"}, "listen.beanstalkd: '0.0.0.0:11300' is not a loopback address"),
    ("", {"listen.beanstalkd": "127.0.0.1:11361"}, "listen.beanstalkd: '127.0.0.1:11361' is listen.client already"),
    ("", {"listen.beanstalkd": "nonsense"}, "listen.beanstalkd: 'nonsense' is not host:port"),
    ("", {"beanstalkd": {"job_bytes_max": -1}}, "beanstalkd.job_bytes_max: must be from 1"),
    ("", {"beanstalkd": {"networks": ["x"]}}, "beanstalkd.networks: "),
    ("", {"listen.beanstalkd": "127.0.0.1:11300", "auth": USERS}, "beanstalkd.user: names the user"),
    ("", {"listen.beanstalkd": "127.0.0.1:11300", "beanstalkd": {"user": "app"}}, "beanstalkd.user: acts as a user"),
    ("", {"listen.beanstalkd": "127.0.0.1:11300", "beanstalkd": {"tls": True}}, "beanstalkd.tls: needs the section"),
    ("", {"listen.beanstalkd": ":11300", "beanstalkd": {"networks": ["x"]}}, "beanstalkd.networks: "),
    ("", {"listen.beanstalkd": "127.0.0.1:11300", "beanstalkd": {"job_bytes_max": 0}}, "beanstalkd.job_bytes_max: "),
    ("", {"auth": USERS, "listen.legacy": [LEGACY, LEGACY]}, f"listen.legacy[1].address: '{FAR}' is listen.legacy[0]"),
    ("", {"auth": USERS, "listen.legacy": [{**LEGACY, "networks": ["10.0.0.1/8"]}]}, "listen.legacy[0].networks: 10."),
    ("", {"auth": {"users_file": ""}}, "auth.users_file: must not be empty"),
    ("[tls]\ncert = \"a\"\nkey = \"b\"", {}, "tls.ca: this key is required"),
    ("", {"tls": {**TLS, "ca": ""}}, "tls.ca: must not be empty"),
    ("", {"tls": {**TLS, "client_cert": "x"}}, "tls.client_cert: and tls.client_key go together"),
    ("[feed]\nkeep_bytes = -1", {}, "feed.keep_bytes: must be from 0"),
    ("[feed]\nreplica = \"n1\"", {}, "feed.replica: must be the id of a cluster"),
    ("[replica]\nof = \"127.0.0.1\"", {}, "replica.of: '127.0.0.1' is not host:port"),
    ("[replica]\nof = \"127.0.0.1:1,10.0.0.1:2\"", {}, "replica.ca: names the authority"),
    ("[replica]\nof = \"127.0.0.1:1\"\nuser = \"copy\"", {}, "replica.user: and replica.secret_file go together"),
    ("[replica]\nca = \"ca.crt\"", {}, "replica.ca: needs replica.of"),
    ("", {"replica": {"of": "127.0.0.1:1", "ca": ""}}, "replica.ca: must not be empty"),
    ("[log]\nformat = \"xml\"", {}, "log.format: must be"),
    ("[log]\nlevel = \"loud\"", {}, "log.level: must be"),
    ("[limits]\nidle_timeout_s = -1", {}, "limits.idle_timeout_s: must be from 0"),
    ("[limits]\nmemory_mark = -1", {}, "limits.memory_mark: must be from 0"),
])
def test_what_is_wrong_is_named(text: str, change: dict[str, Any], sentence: str) -> None:
    assert refusal(text, change).startswith(sentence)


def test_other_than_loopback_must_be_wanted() -> None:
    wanted = document()
    wanted["listen"].update(client="0.0.0.0:11361", peer="[2001:db8::1]:11362", insecure=True)
    assert read(wanted, {}).listen.client == "0.0.0.0:11361"
    wanted["listen"].update(client="localhost:11361", peer="[::1]:11362", http="127.8.8.8:1", insecure=False)
    assert read(wanted, {}).listen.peer == "[::1]:11362"


def test_other_than_loopback_is_welcome_where_it_is_safe() -> None:
    wanted = document()
    wanted["listen"].update(client="10.0.0.1:11361", peer="10.0.0.1:11362", http="10.0.0.1:11363", legacy=[LEGACY])
    wanted.update(tls=TLS, auth=USERS)
    assert read(wanted, {}).listen.legacy[0].user == "old"


def test_the_environment_overrides_the_file() -> None:
    config = read(document("[limits]\nconnections_max = 7"), {
        "SOCKPQD_LIMITS_CONNECTIONS_MAX": "9", "SOCKPQD_NODE_NAME": "n2", "SOCKPQD_LISTEN_INSECURE": "true",
        "SOCKPQD_GATEWAY_OFFLINE_CLOSE": "false", "SOCKPQD_RAFT_HEARTBEAT_MS": "20",
        "SOCKPQD_BEANSTALKD_JOB_BYTES_MAX": "30", "SOCKPQD_BIN_DIR": "/somewhere", "PATH": "/bin", "SOCKPQD": "x",
    })
    assert config.limits.connections_max == 9
    assert config.node.name == "n2"
    assert config.listen.insecure
    assert not config.gateway.offline_close
    assert config.raft.heartbeat_ms == 20
    assert config.beanstalkd.job_bytes_max == 30


def test_the_environment_can_override_every_section_but_the_members() -> None:
    for section in set(Config.__struct_fields__) - {"cluster"}:
        sentence = refusal(environment={f"SOCKPQD_{section.upper()}_NO_SUCH_KEY": "1"})
        assert sentence.endswith(f"section [{section}] has no key no_such_key")


@pytest.mark.parametrize(("variable", "value", "sentence"), [
    ("SOCKPQD_LIMITS_DATA", "1", "SOCKPQD_LIMITS_DATA (environment): section [limits] has no key data"),
    ("SOCKPQD_LIMITS_DATA_BYTES_MAX", "8M", "SOCKPQD_LIMITS_DATA_BYTES_MAX (environment): expected int"),
    ("SOCKPQD_RAFT_LEASE_MS", "9999", "raft.lease_ms: must be smaller"),
])
def test_a_wrong_override_is_named(variable: str, value: str, sentence: str) -> None:
    assert refusal(environment={variable: value}).startswith(sentence)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml: No such file"):
        load(tmp_path / "missing.toml", {})
    (tmp_path / "broken.toml").write_text("[node\n")
    with pytest.raises(ConfigError, match=r"broken\.toml: .*line 1"):
        load(tmp_path / "broken.toml", {})
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    with pytest.raises(ConfigError, match=r"latin\.toml: "):
        load(tmp_path / "latin.toml", {})


@pytest.mark.parametrize(("address", "parts"), [
    ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:65535", ("::1", 65535)), ("a.example:80", ("a.example", 80)),
])
def test_addresses_are_split(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address", ["", "a", "a:", ":1", "a:b", "a:1_0", "a:65536", "[::1:1", "[x]:1", "a b:1", "1:2:3"],
)
def test_bad_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        split_address(address)


@pytest.mark.parametrize(("host", "alone"), [
    ("localhost", True), ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True),
    ("::ffff:10.0.0.1", False), ("10.0.0.1", False), ("0.0.0.0", False), ("::", False), ("example.org", False),
])
def test_which_addresses_stand_for_this_machine_alone(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone


def test_every_key_is_documented_with_its_default() -> None:
    text = (Path(__file__).parents[3] / "docs" / "CONFIGURATION.md").read_text()
    for section in (QueueSection, Limits, Raft, GatewaySection, Log, BeanstalkdSection, FeedSection, ReplicaSection):
        name = section.__name__.removesuffix("Section").lower()
        for field in msgspec.structs.fields(section):
            default = json.dumps(field.default)
            shown = default if default.isdigit() else f"`{default}`"
            assert f"| `{name}.{field.name}` | {shown} |" in text, field.name
    example = text.split("```toml\n")[1].split("```")[0]
    config = read(tomllib.loads(example), {})
    for section in (config.node, config.listen, config.cluster.members[0]):
        for field in msgspec.structs.fields(type(section)):
            assert field.name in text
    secure = read(tomllib.loads(example + text.split("```toml\n")[2].split("```")[0]), {})
    assert secure.tls is not None
    for section in (secure.tls, secure.auth, secure.listen.legacy[0]):
        for field in msgspec.structs.fields(type(section)):
            assert f"{field.name} = " in text


def test_documents_name_only_keys_that_exist() -> None:
    root = Path(__file__).parents[3]
    of_sqs = {field.name: field.type for field in msgspec.structs.fields(SqsSettings)}      # in two of the documents
    known = {
        f"{section}.{field.encode_name}"
        for section, kind in (*SECTIONS.items(), *of_sqs.items()) for field in msgspec.structs.fields(kind)
    }
    named = re.compile(rf"`((?:{'|'.join(SECTIONS)})\.[a-z_]+)[`. =]")
    documents = [root / "README.md", root / "client" / "README.md", *(root / "docs").rglob("*.md")]
    found = {(path.name, key) for path in documents for key in named.findall(path.read_text())}
    assert len(found) > 50
    assert {(name, key) for name, key in found if key not in known and not key.endswith((".md", ".py"))} == set()


def test_names_of_the_http_port() -> None:
    assert read(tomllib.loads(GOOD), {}).listen.hosts == ()
    named = read(tomllib.loads(GOOD), {"SOCKPQD_LISTEN_HOSTS": "n1.example.net, N1_x"})
    assert named.listen.hosts == ("n1.example.net", "N1_x")
    assert read(tomllib.loads(GOOD), {"SOCKPQD_LISTEN_HOSTS": ""}).listen.hosts == ()
    for wrong in ("n1:80", "http://n1", "a b", "", ".a"):
        document = tomllib.loads(GOOD)
        document["listen"]["hosts"] = [wrong]
        with pytest.raises(ConfigError, match=r"listen\.hosts: .* is not the name of a host, without port"):
            read(document, {})
