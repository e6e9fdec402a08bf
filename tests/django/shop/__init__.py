"""A Django project for the tests of sockpq_django: settings, models and tasks."""
