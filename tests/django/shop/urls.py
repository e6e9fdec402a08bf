"""The pages of the shop."""

from __future__ import annotations

import sockpq_django.views
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls), path("health/", sockpq_django.views.health)]
