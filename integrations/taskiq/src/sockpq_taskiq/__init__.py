"""Taskiq on sockpqd: a broker, a result backend and a source of schedules."""
