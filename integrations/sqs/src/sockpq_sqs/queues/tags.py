"""The rules for tags of queues."""

from __future__ import annotations

from collections.abc import Mapping

from sockpq_sqs.model.errors import invalid

TAGS_MAX = 50
KEY_MAX, VALUE_MAX = 128, 256       # characters


def check_tags(name: str, tags: Mapping[str, str]) -> None:
    """Check all tags of the queue `name`. Raises SqsError."""
    if len(tags) > TAGS_MAX:
        raise invalid(f"Too many tags added for queue {name}.")
    for key, value in tags.items():
        if not 0 < len(key) <= KEY_MAX:
            raise invalid(f"Tag keys must be between 1 and {KEY_MAX} characters in length.")
        if key.lower().startswith("aws:"):
            raise invalid("Tag keys must not begin with aws:, which is reserved.")
        if len(value) > VALUE_MAX:
            raise invalid(f"Tag values must be between 0 and {VALUE_MAX} characters in length.")
