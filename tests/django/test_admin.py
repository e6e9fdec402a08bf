"""The admin pages of failed tasks, and the health check."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core import checks
from django.core.management import call_command
from django.test import Client as Browser
from sockpq import Client
from sockpq_django.api import TaskResultDoesNotExist, TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.models import OutboxRow
from sockpq_django.operations import reachability

from tests.django.conftest import Configure
from tests.django.shop import tasks

LIST = "/admin/sockpq_django/deadtask/"

pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture
def users(databases: None) -> Iterator[None]:
    yield
    User.objects.all().delete()


def browser(*rights: str, staff: bool = True) -> Browser:
    """Log a user with these rights for failed tasks in."""
    user = User.objects.create_user("ann", is_staff=staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=[f"{right}_deadtask" for right in rights]))
    assert user.user_permissions.count() == len(rights)
    found = Browser()
    found.force_login(user)
    return found


def failed(backend: SockpqBackend, text: str = "it fails") -> Any:
    result = tasks.fail.enqueue(text)
    backend.run(worker="w1")
    return result


def page_of(result: Any) -> str:
    return f"{LIST}{result.id.replace('/', '_2F')}/change/"


@pytest.mark.usefixtures("users")
def test_failed_tasks_are_listed_with_their_errors(backend: SockpqBackend) -> None:
    found = browser("view")
    assert "No task has failed" in found.get(LIST).content.decode()
    result = failed(backend, "<b>it fails</b>")
    page = found.get(LIST).content.decode()
    assert "tests.django.shop.tasks.fail" in page
    assert "Strange: &lt;b&gt;it fails&lt;/b&gt;" in page
    assert page_of(result) in page
    detail = found.get(page_of(result)).content.decode()
    assert "Traceback (most recent call last)" in detail
    assert "by w1" in detail
    for text in (page, detail):
        assert 'value="retry"' not in text
        assert 'value="remove"' not in text


@pytest.mark.usefixtures("users")
def test_the_index_leads_to_the_list(backend: SockpqBackend) -> None:
    assert LIST in browser("view").get("/admin/").content.decode()


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("rights", [(), ("view",), ("view", "delete")])
def test_only_those_with_the_right_retry(backend: SockpqBackend, rights: tuple[str, ...]) -> None:
    result = failed(backend)
    found = browser(*rights)
    for path in (LIST, page_of(result)):
        assert found.post(path, {"action": "retry", "selected": [result.id]}).status_code == 403
    if not rights:
        assert found.get(LIST).status_code == found.get(page_of(result)).status_code == 403
    result.refresh()
    assert result.status == TaskResultStatus.FAILED


@pytest.mark.usefixtures("users")
def test_only_those_with_the_right_remove(backend: SockpqBackend) -> None:
    result = failed(backend)
    found = browser("view", "change")
    assert found.post(LIST, {"action": "remove", "selected": [result.id]}).status_code == 403
    assert found.post(LIST, {"action": "else", "selected": [result.id]}).status_code == 403
    result.refresh()


@pytest.mark.usefixtures("users")
def test_a_retried_task_has_all_its_tries_again(cluster: Configure) -> None:
    backend = cluster(TRIES=2)
    result, other = failed(backend), failed(backend)
    found = browser("view", "change")
    done = found.post(LIST, {"action": "retry", "selected": [result.id, "default/" + "0" * 32]}, follow=True)
    assert "1 task was retried" in done.content.decode()
    result.refresh()
    assert (result.status, len(result.errors)) == (TaskResultStatus.READY, 2)
    assert LogEntry.objects.get().object_id == result.id
    tasks.RAN.clear()
    assert backend.run() == 2
    result.refresh()
    other.refresh()
    assert (result.status, len(result.errors), result.attempts) == (TaskResultStatus.FAILED, 4, 4)
    assert len(other.errors) == 2


@pytest.mark.usefixtures("users")
def test_a_task_is_retried_or_removed_on_its_own_page(backend: SockpqBackend, client: Client) -> None:
    result = failed(backend)
    found = browser("view", "change", "delete")
    assert 'value="retry"' in found.get(page_of(result)).content.decode()
    assert found.post(page_of(result), {"action": "retry"}).status_code == 302
    assert found.get(page_of(result)).status_code == 404
    backend.run()
    assert found.post(page_of(result), {"action": "remove"}).status_code == 302
    assert client.total().jobs == 0
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


@pytest.mark.usefixtures("users")
def test_forms_of_other_sites_are_refused(backend: SockpqBackend) -> None:
    result = failed(backend)
    user = User.objects.create_superuser("root")
    strict = Browser(enforce_csrf_checks=True)
    strict.force_login(user)
    assert strict.post(LIST, {"action": "retry", "selected": [result.id]}).status_code == 403


@pytest.mark.usefixtures("users")
def test_what_is_no_call_is_listed_too(backend: SockpqBackend, client: Client) -> None:
    client.put("default", b"hello", key="0" * 32, number=True)
    backend.run()
    assert "the job is no call of a task" in browser("view").get(LIST).content.decode()


@pytest.mark.usefixtures("users")
def test_pages_that_have_no_sense_here_lead_to_the_task(backend: SockpqBackend) -> None:
    result = failed(backend)
    found = browser("view", "delete", "change")
    for page in ("delete", "history"):
        answer = found.get(page_of(result).replace("change", page))
        assert (answer.status_code, answer.headers["Location"]) == (302, page_of(result))
    assert found.get(f"{LIST}add/").status_code == 403


@pytest.mark.usefixtures("users")
def test_a_cluster_that_does_not_serve_is_reported(cluster: Configure) -> None:
    result = failed(cluster())
    cluster(SERVERS="127.0.0.1:1", TIMEOUT=0.2)
    found = browser("view", "change")
    page = found.get(LIST).content.decode()
    assert "The cluster of &#x27;default&#x27; does not answer: no server" in page
    assert "No task has failed" not in page
    assert "does not answer" in found.get(page_of(result), follow=True).content.decode()
    assert "0 tasks were retried" in found.post(page_of(result), {"action": "retry"}, follow=True).content.decode()


def test_health(cluster: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster()
    answer = Browser().get("/health/")
    assert (answer.status_code, answer.json()) == (200, {"serving": {"default": True}, "outbox_lag_s": {}})
    monkeypatch.setattr(reachability, "TIMEOUT_S", 0.2)
    cluster(SERVERS="127.0.0.1:1")
    answer = Browser().get("/health/")
    assert (answer.status_code, answer.json()) == (503, {"serving": {"default": False}, "outbox_lag_s": {}})


def test_health_says_how_long_the_oldest_row_waits(cluster: Configure) -> None:
    cluster(OUTBOX="other")
    assert Browser().get("/health/").json()["outbox_lag_s"] == {"default": 0.0}
    tasks.note.enqueue("x")
    tasks.note.enqueue("y")
    OutboxRow.objects.using("other").filter(id=OutboxRow.objects.using("other").first().id).update(
        created=time.time() - 3600)
    assert Browser().get("/health/").json()["outbox_lag_s"]["default"] >= 3600
    OutboxRow.objects.using("other").update(batch="relay.1")
    assert Browser().get("/health/").json()["outbox_lag_s"] == {"default": 0.0}


def test_the_check_for_deployment_asks_the_servers(cluster: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster()
    assert "sockpq_django.W001" not in [one.id for one in checks.run_checks(include_deployment_checks=True)]
    monkeypatch.setattr(reachability, "TIMEOUT_S", 0.2)
    cluster(SERVERS="127.0.0.1:1")
    assert "sockpq_django.W001" in [one.id for one in checks.run_checks(include_deployment_checks=True)]
    assert "sockpq_django.W001" not in [one.id for one in checks.run_checks()]


def test_migrations_are_complete(databases: None) -> None:
    call_command("makemigrations", "sockpq_django", check=True, dry_run=True, verbosity=0)
