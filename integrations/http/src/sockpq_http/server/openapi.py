"""The OpenAPI document: FastAPI's document of the table, with the answers and the rules that all requests share."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from sockpq_http._version import __version__
from sockpq_http.problems.problem import MEDIA_TYPE, ProblemView
from sockpq_http.routes.jobs import PUT_MODELS

TITLE = "sockpqd"
ABOUT = (
    "The replicated priority job queue over HTTP. docs/HTTP.md of the project explains it: jobs, times, "
    "Idempotency-Key, what a status means, and what happens when something dies."
)
REF = "#/components/schemas/{model}"
PROBLEMS = {
    "400": "The request is not valid; nothing was executed.",
    "401": "Credentials are missing or wrong.",
    "403": "The user has no right to do that.",
    "404": "There is no such job, queue or other thing.",
    "408": "Nothing came in time.",
    "409": "The state does not allow it: it exists, is running, or an operation of a transaction would be refused.",
    "413": "The body is larger than the queue or this program allows, or has very many values.",
    "422": "The Idempotency-Key was used for another request; nothing was executed.",
    "501": "The cluster does not know that yet.",
    "502": "The servers of the cluster do not speak its protocol, or are those of another cluster.",
    "503": "Nothing was executed: repeat it after `Retry-After`.",
    "504": "It is not known whether it was executed: repeat it with the same Idempotency-Key.",
}
AGAIN = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
SECURITY = {
    "basic": {"type": "http", "scheme": "basic", "description": "User and secret of the cluster."},
    "bearer": {"type": "http", "scheme": "bearer", "description": "The base64 of `user:secret`."},
}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document of this application."""
    made: dict[str, Any] = get_openapi(
        title=TITLE, version=__version__, summary="A priority job queue", description=ABOUT, routes=app.routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"}, separate_input_output_schemas=False,
    )
    for operations in made["paths"].values():
        for operation in operations.values():
            _refine(operation)
            _add_problems(operation)
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    _, more = models_json_schema([(model, "validation") for model in (*PUT_MODELS, ProblemView)], ref_template=REF)
    for name, schema in more.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name not in schema.get("required", ()):
                schema["properties"][name] = _describe_default(_without_null(field))
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = SECURITY
    made["security"] = [{"basic": []}, {"bearer": []}, {}]
    return made


def is_keyed(operation: dict[str, Any]) -> bool:
    """Return whether a request takes an Idempotency-Key."""
    return any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ()))


def text_of(made: dict[str, Any]) -> str:
    """Return the document as the file docs/openapi.json has it."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _add_problems(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop("422", None)              # the framework's; here values that are not valid are 400
    for status, description in PROBLEMS.items():
        if status == "422" and not is_keyed(operation):
            continue
        one: dict[str, Any] = {
            "description": description,
            "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="ProblemView")}}},
        }
        if status == "503":
            one["headers"] = AGAIN
        responses.setdefault(status, one)


def _refine(operation: dict[str, Any]) -> None:
    """Write parameters, bodies and streams in the way that client generators understand."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"] = _without_null(parameter["schema"])
        if schema.get("type") == "string" and isinstance(schema.get("default"), float):
            schema["default"] = f"{schema['default']:g}"
        if schema.get("default") == []:
            del schema["default"]           # without one the meaning is the same
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content["schema"] = _without_null(content["schema"])
    for answer in operation["responses"].values():
        if "text/event-stream" in answer.get("content", {}):
            answer["content"].pop("application/json", None)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be left out but is never null: a parameter, a field, or a whole body."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == len(schema.get("anyOf", ())):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf" and value is not None}
    return {**rest, **choices[0]} if len(choices) == 1 else {**rest, "anyOf": choices}


def _describe_default(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field; the default of one with several forms is in its description only."""
    rest = {name: value for name, value in schema.items() if name != "default"}
    if schema.get("default") is None:
        return rest
    if "anyOf" not in schema:
        return schema
    return {**rest, "description": f"{schema.get('description', '')} Default: {schema['default']:g}.".strip()}
