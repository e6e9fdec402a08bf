"""TLS and the user: where they come from, and messages about what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import trustme
from sockpq import Client

from sockpqd.core import SetUser, User
from sockpqd.pqctl import settings
from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.settings import Options, find_access
from tests.client.certificates import ca_file, server_tls
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import run
from tests.pqctl.test_settings import write

SECRET = "a-secret-that-nobody-may-see"


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    file = tmp_path / "secret"
    file.touch(mode=0o600)
    file.write_text(f"{SECRET}\n")
    return str(file)


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return ca_file(tmp_path)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handshake take as long as a busy machine needs for it, not a second."""
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "connect_timeout", 60.0)


@pytest.fixture
def secure() -> Iterator[MemoryCluster]:
    with MemoryCluster(tls=server_tls(), users={"ann": SECRET}) as cluster:
        yield cluster


@pytest.fixture
def ann(secure: MemoryCluster, ca: str, secret_file: str) -> list[str]:
    """Return the options that let her in."""
    return ["--servers", ",".join(secure.addresses), "--ca", ca, "--user", "ann", "--secret-file", secret_file]


def checks(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    code, out, _ = run(capsys, *arguments, "doctor", "--json")
    return code, {check["name"]: (check["state"], check["found"]) for check in json.loads(out)["checks"]}


# where they come from

def test_the_first_that_is_there_counts(
    monkeypatch: pytest.MonkeyPatch, secret_file: str, tmp_path: Path
) -> None:
    assert find_access(Options()) == ClusterAccess()
    write(settings.SYSTEM_FILE, "ca = '/ca'\nuser = 'system'\nsecret_file = 'beside'")
    write(settings.SYSTEM_FILE.with_name("beside"), "of-the-system\n")
    settings.SYSTEM_FILE.with_name("beside").chmod(0o600)
    assert find_access(Options()) == ClusterAccess(
        "/ca", "system", "of-the-system", str(settings.SYSTEM_FILE.with_name("beside")))
    monkeypatch.setenv("SOCKPQ_SECRET_FILE", secret_file)
    monkeypatch.setenv("SOCKPQ_CA", "/other")
    monkeypatch.setenv("SOCKPQ_USER", "variable")
    assert find_access(Options()) == ClusterAccess("/other", "variable", SECRET, secret_file)
    monkeypatch.setenv("SOCKPQ_SECRET", "itself")
    assert find_access(Options()) == ClusterAccess("/other", "variable", "itself")
    options = Options(ca="/option", user="option", secret_file=secret_file)
    assert find_access(options) == ClusterAccess("/option", "option", SECRET, secret_file)


def test_what_goes_on_for_long_finds_a_new_secret_in_its_file(
    secure: MemoryCluster, ca: str, secret_file: str
) -> None:
    access = find_access(Options(ca=ca, user="ann", secret_file=secret_file, tls=True))
    assert SECRET not in repr(access)
    with access.client(secure.addresses, timeout=30.0) as client:
        client.put("q", b"before")
        secure.change_users({"ann": "another"})
        Path(secret_file).write_text("another\n")
        secure.lead(secure.servers[1])
        client.put("q", b"after")
    assert [view.error for view in access.survey(secure.addresses, 5.0)] == [None] * len(secure.addresses)
    assert access.present_secret == "another"


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"\xff"),
                                    lambda file: file.write_text("")], ids=["gone", "no text", "empty"])
def test_a_file_without_a_secret_leaves_the_one_before_in_use(secret_file: str, damage: Callable[[Path], None]) -> None:
    access = find_access(Options(user="ann", secret_file=secret_file))
    damage(Path(secret_file))
    assert access.present_secret == SECRET


@pytest.mark.parametrize(("file", "variable", "options", "expected"), [
    ("", "", {}, None), ("tls = true", "", {}, True), ("tls = true\nca = '/f'", "", {}, "/f"),
    ("tls = false\nca = '/f'", "", {}, None), ("tls = false", "/v", {}, "/v"), ("ca = '/f'", "", {"tls": False}, None),
    ("", "/v", {"tls": False}, None), ("tls = false\nca = '/f'", "", {"tls": True}, "/f"),
    ("", "", {"tls": True}, True),
    ("tls = true", "", {"ca": "/o"}, "/o"), ("", "/v", {"tls": True}, "/v"), ("tls = false", "", {"ca": "/o"}, "/o"),
])
def test_whether_tls_is_wanted(
    file: str, variable: str, options: dict[str, Any], expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(settings.SYSTEM_FILE, file)
    monkeypatch.setenv("SOCKPQ_CA", variable)
    assert find_access(Options(**options)).tls == expected


def test_a_secret_and_its_user_belong_together(monkeypatch: pytest.MonkeyPatch, secret_file: str) -> None:
    with pytest.raises(click.UsageError, match="user ann needs a secret"):
        find_access(Options(user="ann"))
    with pytest.raises(click.UsageError, match="whose secret"):
        find_access(Options(secret_file=secret_file))
    monkeypatch.setenv("SOCKPQ_SECRET", SECRET)
    with pytest.raises(click.UsageError, match="whose secret") as error:
        find_access(Options())
    assert SECRET not in str(error.value)
    assert SECRET not in repr(find_access(Options(user="ann")))


def test_a_secret_others_can_read_is_warned_of(secret_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    find_access(Options(user="ann", secret_file=secret_file))
    assert capsys.readouterr().err == ""
    Path(secret_file).chmod(0o644)
    find_access(Options(user="ann", secret_file=secret_file))
    assert f"chmod 600 {secret_file}" in capsys.readouterr().err


# with servers

def test_every_kind_of_command_says_who_it_is(ann: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["cluster", "status"], ["cluster", "leader"], ["cluster", "hash"], ["queue", "stat"],
                      ["job", "put", "q", "body"], ["node", "snapshot", "n2"], ["cluster", "transfer"]):
        code, _, err = run(capsys, *ann, *arguments)
        assert (code, err) == (0, ""), arguments


def test_a_wrong_secret_has_its_own_exit_code(
    secure: MemoryCluster, ann: list[str], secret_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(secret_file).write_text("another-secret")
    for arguments in (["cluster", "status"], ["cluster", "leader"], ["job", "put", "q", "x"], ["cluster", "transfer"]):
        code, out, err = run(capsys, *ann, *arguments, "--json", "--timeout", "60")
        assert code == 77
        assert json.loads(out)["error"] == "not allowed"
        assert "the server refuses user 'ann' with this secret" in err
        assert "another-secret" not in out + err
    secure.servers[0].stop()
    assert run(capsys, *ann, "cluster", "status", "--timeout", "60")[0] == 77


def test_without_a_user_it_is_told_how_to_give_one(
    secure: MemoryCluster, ca: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--servers", secure.addresses[0], "--ca", ca, "queue", "list")
    assert code == 77
    assert "401 Auth Required" in err
    assert "--secret-file" in err


def test_a_missing_right_is_told(secure: MemoryCluster, ann: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    secure.change_users({"ann": SECRET}, "get")
    code, out, err = run(capsys, *ann, "job", "put", "q", "x")
    assert (code, out) == (77, "")
    assert err.startswith("refused: 403 Forbidden (it needs the right put for queue q: an administrator sees")


def test_a_certificate_that_is_not_good_is_told(ca: str, capsys: pytest.CaptureFixture[str]) -> None:
    with MemoryCluster(tls=server_tls(days=-1)) as cluster:
        code, _, err = run(capsys, "--servers", cluster.addresses[0], "--ca", ca, "queue", "list")
    assert code == 2
    assert err == f"{cluster.addresses[0]}: its certificate has expired\n"


# doctor

def test_doctor_tells_how_long_certificates_are_good(ann: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checks(capsys, *ann)
    assert code == 0
    assert found["tls"] == ("OK", "all certificates are good for 89 days at least")
    assert found["user"] == ("OK", "ann is let in")


@pytest.mark.parametrize(("tls", "state", "text", "code"), [
    (lambda: server_tls(days=20.5), "WARN", "ends in 20 days", 1),
    (lambda: server_tls(days=-1), "FAIL", "its certificate has expired", 2),
    (lambda: server_tls("10.0.0.1"), "FAIL", "not for the address 127.0.0.1", 2),
    (lambda: server_tls(ca=trustme.CA()), "FAIL", "from a CA that is not known here", 2),
], ids=["soon", "expired", "address", "ca"])
def test_doctor_tells_what_is_wrong_with_certificates(
    tls: Any, state: str, text: str, code: int, ca: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryCluster(tls=tls()) as cluster:
        told, found = checks(capsys, "--servers", ",".join(cluster.addresses), "--ca", ca)
    assert told == code
    assert found["tls"][0] == state
    assert text in found["tls"][1]
    assert "user" not in found


def test_doctor_tells_of_a_port_that_wants_tls(secure: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = checks(capsys, "--servers", secure.addresses[0])
    assert found["tls"] == ("FAIL", f"TLS is required by {secure.addresses[0]}")


def test_doctor_tells_of_a_port_that_has_no_tls(
    cluster: MemoryCluster, ca: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = checks(capsys, "--servers", cluster.addresses[0])
    assert (code, "tls" in found, "user" in found) == (0, False, False)
    code, found = checks(capsys, "--servers", cluster.addresses[0], "--ca", ca)
    assert (code, found["servers"][0]) == (2, "FAIL")


def test_doctor_tells_of_a_secret_that_is_refused(
    ann: list[str], secret_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(secret_file).write_text("another-secret")
    code, found = checks(capsys, *ann)
    assert (code, found["user"][0]) == (2, "FAIL")
    assert found["tls"][0] == "OK"
    assert found["servers"][0] == "OK"          # they have answered
    assert found["leader"] == ("SKIP", "servers answer this only to users that they accept")


# users

def test_a_user_is_made_with_a_secret_that_is_shown_once(
    secure: MemoryCluster, ann: list[str], ca: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *ann, "user", "set", "bob", "--rights", "put:mail*,get")
    first, second = out.splitlines()
    assert (code, err, first) == (0, "", "bob may: put:mail*, get")
    secret = second.removeprefix("secret, not shown again: ")
    assert secure.users() == {"bob": User("put:mail*,get", secret.encode())}
    with Client(secure.addresses, tls=ca, user="bob", secret=secret) as client:
        client.put("mail", b"x")
    _, out, _ = run(capsys, *ann, "user", "set", "carl", "--rights", "-", "--json")
    told = json.loads(out)
    assert told == {"name": "carl", "rights": [], "secret": secure.users()["carl"].key.decode()}
    assert told["secret"] != secret


def test_a_user_is_given_a_secret(
    secure: MemoryCluster, ann: list[str], secret_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *ann, "user", "set", "bob", "--rights", "get", "--secret-file", secret_file, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"name": "bob", "rights": ["get"], "secret": None}
    assert secure.users()["bob"] == User("get", SECRET.encode())


def test_users_are_listed_and_deleted(
    secure: MemoryCluster, ann: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    secure.execute(SetUser("bob", User("put:mail*,get", SECRET.encode())))
    code, out, _ = run(capsys, *ann, "user", "list", "--json")
    assert (code, json.loads(out)) == (0, {"users": [
        {"name": "ann", "rights": ["admin"], "in_file": True},
        {"name": "bob", "rights": ["put:mail*", "get"], "in_file": False},
    ]})
    code, out, _ = run(capsys, *ann, "user", "list")
    assert (code, out.split()) == (0, [
        "user", "rights", "kept", "in", "ann", "admin", "users", "file", "bob", "put:mail*,", "get", "the", "cluster"])
    assert run(capsys, *ann, "user", "delete", "bob")[:2] == (0, "user bob deleted\n")
    code, _, err = run(capsys, *ann, "user", "delete", "bob")
    assert (code, err) == (1, "there is no user bob (`pqctl user list` shows all)\n")
    code, _, err = run(capsys, *ann, "user", "delete", "ann")
    assert (code, err) == (1, "refused: 409 User In File (this user is in the servers' users file: change it there)\n")
