"""A client continues when the file of its CA or its secret is replaced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from sockpq import AuthError, BadArguments, Client, Untrusted
from sockpq._backends.given_file import GivenFile

from tests.client.certificates import ca_file, server_tls
from tests.client.conftest import EARLY, MakeClient
from tests.client.memory_cluster import MemoryCluster

OLD, NEW = "old-secret-of-ann", "new-secret-of-ann"


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with MemoryCluster(3, tls=server_tls(), users={"ann": OLD}, features=EARLY) as cluster:
        yield cluster


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The files of the CA and the secret."""
    secret = tmp_path / "secret"
    secret.write_text(f"{OLD}\n")
    return Path(ca_file(tmp_path)), secret


@pytest.fixture
def client(cluster: MemoryCluster, make_client: MakeClient, files: tuple[Path, Path]) -> Client:
    made = make_client(cluster.addresses, timeout=20, tls=str(files[0]), user="ann", secret_file=str(files[1]))
    made.put("q", b"before")
    return made


@pytest.fixture(params=["it looks different", "it looks the same"])
def seen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose changes are not reported, or too late, are read again when a server refuses their contents."""
    if request.param == "it looks the same":
        monkeypatch.setattr(GivenFile, "_look", lambda file: (0, 0, 0, 0))


def use_authority(cluster: MemoryCluster, file: Path) -> None:
    """Servers and the file change to another authority; the next command needs another connection."""
    other = trustme.CA()
    cluster.change_tls(server_tls(ca=other))
    file.write_bytes(other.cert_pem.bytes())
    fail_over(cluster)


def use_secret(cluster: MemoryCluster, file: Path) -> None:
    cluster.change_users({"ann": NEW})
    file.write_text(f"{NEW}\n")
    fail_over(cluster)


def fail_over(cluster: MemoryCluster) -> None:
    cluster.lead(cluster.servers[1] if cluster.leader is cluster.servers[0] else cluster.servers[0])


@pytest.mark.usefixtures("seen")
def test_another_authority(cluster: MemoryCluster, client: Client, files: tuple[Path, Path]) -> None:
    use_authority(cluster, files[0])
    client.put("q", b"after")
    use_authority(cluster, files[0])
    client.put("q", b"again")
    assert cluster.bodies("q") == [b"before", b"after", b"again"]


@pytest.mark.usefixtures("seen")
def test_another_secret(cluster: MemoryCluster, client: Client, files: tuple[Path, Path]) -> None:
    use_secret(cluster, files[1])
    client.put("q", b"after")
    assert cluster.bodies("q") == [b"before", b"after"]


@pytest.mark.usefixtures("seen")
def test_connections_that_have_to_say_the_new_secret(
    cluster: MemoryCluster, client: Client, files: tuple[Path, Path],
) -> None:
    cluster.change_users({"ann": NEW})
    files[1].write_text(NEW)
    for bodies in ([b"after"], [b"1", b"2", b"3"], [b"again"]):
        cluster.change_users({"ann": NEW})      # who has authenticated must do it again
        if len(bodies) == 1:
            client.put("q", bodies[0])
        else:
            client.put_many("q", bodies)
    assert cluster.bodies("q") == [b"before", b"after", b"1", b"2", b"3", b"again"]
    cluster.change_users({})
    with pytest.raises(AuthError):
        client.put("q", b"of nobody")


def test_both_and_files_that_come_later(cluster: MemoryCluster, client: Client, files: tuple[Path, Path]) -> None:
    before = [file.read_bytes() for file in files]
    use_authority(cluster, files[0])
    use_secret(cluster, files[1])
    after = [file.read_bytes() for file in files]
    for file, content in zip(files, before, strict=True):
        file.write_bytes(content)
    fail_over(cluster)
    with pytest.raises(Untrusted):
        client.put("q", b"untrusted")
    files[0].write_bytes(after[0])
    with pytest.raises(AuthError):
        client.put("q", b"refused")
    files[1].write_bytes(after[1])
    client.put("q", b"after")
    assert cluster.bodies("q") == [b"before", b"after"]


@pytest.mark.parametrize("spoil", [
    lambda file: file.write_bytes(b""), lambda file: file.write_bytes(b"\xff half of"), lambda file: file.unlink(),
])
def test_files_that_cannot_be_used_change_nothing(
    cluster: MemoryCluster, client: Client, files: tuple[Path, Path], spoil: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for file in files:
        spoil(file)
    fail_over(cluster)
    client.put("q", b"after")
    assert cluster.bodies("q") == [b"before", b"after"]
    told = [record.getMessage() for record in caplog.records if "stays in use" in record.getMessage()]
    assert {str(file) for file in files} == {file for file in map(str, files) if any(file in one for one in told)}
    assert not any("half" in one for one in told)


def test_a_server_that_is_named(cluster: MemoryCluster, files: tuple[Path, Path]) -> None:
    with Client(cluster.addresses[0], tls=str(files[0]), user="ann", secret_file=files[1]) as one:
        one.put("q", b"before")
        use_secret(cluster, files[1])
        use_authority(cluster, files[0])
        for address in cluster.addresses:
            one.ping(address)


def test_a_pipe_is_read_once(cluster: MemoryCluster, files: tuple[Path, Path]) -> None:
    reader, writer = os.pipe()
    os.write(writer, OLD.encode())
    os.close(writer)
    try:
        with Client(cluster.addresses, tls=files[0], user="ann", secret_file=f"/dev/fd/{reader}") as client:
            client.put("q", b"1")
            fail_over(cluster)
            client.put("q", b"2")
            use_secret(cluster, files[1])
            with pytest.raises(AuthError):
                client.put("q", b"3")
    finally:
        os.close(reader)


@pytest.mark.parametrize("options", [
    {"user": "ann", "secret": OLD, "secret_file": "secret"}, {"secret_file": "secret"},
    {"user": "ann", "secret_file": "/nowhere"}, {"user": "ann", "secret_file": "."},
    {"user": "ann", "secret_file": "\0"},
])
def test_what_is_no_secret_file_is_refused(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(OLD)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadArguments):
        Client("127.0.0.1:1", **options)        # type: ignore[arg-type]
