"""The admin pages of failed tasks: read their errors, retry or remove them. They ask the cluster; there is no table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from sockpq import SockpqError

from sockpq_django.backend import SockpqBackend
from sockpq_django.backends import own_backends
from sockpq_django.models import DeadTask
from sockpq_django.operations.dead import FailedTask, failed_task, failed_tasks, remove_task, retry_task

CHANGELIST = "admin:sockpq_django_deadtask_changelist"
RETRY, REMOVE = "retry", "remove"


@admin.register(DeadTask)
class DeadTaskAdmin(admin.ModelAdmin):
    """Lists failed tasks and shows their errors. The right `change` is for retrying, `delete` for removing them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: tasks are enqueued by programs."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the failed tasks of all backends, or retry or remove those that were selected."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._act(request, request.POST.getlist("selected"))
        tasks: list[tuple[FailedTask, str]] = []
        complete = True
        for backend in own_backends():
            try:
                tasks += [(task, quote(task.id)) for task in failed_tasks(backend)]
            except SockpqError as error:
                complete = False
                self._report(request, backend, error)
        return self._page(request, "change_list", "Failed tasks", tasks=tasks, complete=complete)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a failed task with the errors of all its attempts, or retry or remove it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        result_id = unquote(object_id)
        if request.method == "POST":
            return self._act(request, [result_id])
        for backend in own_backends():
            try:
                task = failed_task(backend, result_id)
            except SockpqError as error:
                self._report(request, backend, error)
                return HttpResponseRedirect(reverse(CHANGELIST, current_app=self.admin_site.name))
            if task:
                return self._page(request, "change_form", task.path, task=task)
        raise Http404(f"there is no failed task {result_id}: it was retried or removed")

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the page of the task, on which it is removed."""
        return HttpResponseRedirect(reverse("admin:sockpq_django_deadtask_change", args=(object_id,)))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the page of the task: its attempts are its only history."""
        return HttpResponseRedirect(reverse("admin:sockpq_django_deadtask_change", args=(object_id,)))

    def _page(self, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
        context |= {
            **self.admin_site.each_context(request), "title": title, "opts": self.model._meta,
            "may_retry": self.has_change_permission(request), "may_remove": self.has_delete_permission(request),
        }
        return TemplateResponse(request, f"admin/sockpq_django/deadtask/{name}.html", context)

    def _act(self, request: HttpRequest, ids: Iterable[str]) -> HttpResponse:
        """Retry or remove these tasks. Raises PermissionDenied."""
        action = request.POST.get("action")
        if action == RETRY and self.has_change_permission(request):
            act, done = retry_task, "retried"
        elif action == REMOVE and self.has_delete_permission(request):
            act, done = remove_task, "removed"
        else:
            raise PermissionDenied
        count = 0
        for result_id in ids:
            for backend in own_backends():
                if self._acted(request, act, backend, result_id):
                    count += 1
                    self.log_change(request, DeadTask(id=result_id), done.capitalize())
                    break
        self.message_user(request, f"{count} {'task was' if count == 1 else 'tasks were'} {done}.")
        return HttpResponseRedirect(reverse(CHANGELIST, current_app=self.admin_site.name))

    def _acted(self, request: HttpRequest, act: Any, backend: SockpqBackend, result_id: str) -> bool:
        try:
            return bool(act(backend, result_id))
        except SockpqError as error:
            self._report(request, backend, error)
            return False

    def _report(self, request: HttpRequest, backend: SockpqBackend, error: SockpqError) -> None:
        """Show why a cluster does not answer."""
        self.message_user(request, f"The cluster of {backend.alias!r} does not answer: {error}", messages.ERROR)
