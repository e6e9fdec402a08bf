"""Generates the methods that the two clients have in common, so that each call is declared once.

    python client/tools/faces.py [--check]

1. A call is a function in `sockpq/_protocol/commands` that is marked with `@call`. Below each line `# declared: <class>
   <modules>` of the files in `sockpq/_async` this program writes a method of that class for every call of these modules
   that it has, with all options by name and type.
2. Each file of `sockpq/_async` becomes one of `sockpq/_sync`: the blocking client.

With --check nothing is written; the exit code is 1 if a file differs from the output of this program.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "sockpq"
# As the client calls them: the files.
MODULES = {"jobs": "jobs", "records": "records", "items": "items", "queue_commands": "queues", "groups": "groups",
           "cluster": "cluster", "clusters": "clusters", "event_commands": "events", "pulses": "pulses"}
HELD = {"bodies": "self._router.bodies"}        # parameters that callers do not give
BY_HAND = {"getting.py", "heartbeat.py", "keepalive.py", "__init__.py"}     # of _async: they have no blocking form
LINE_MAX = 120
DECLARED = re.compile(r"    # declared: (\w+) ([\w ]+)\n")
IMPORT = re.compile(r"^from sockpq.*(?:[^(\n]\n|\(\n(?:    .*\n)+\)\n)", re.MULTILINE)
IMPORTS = re.compile(rf"(?:{IMPORT.pattern})+", re.MULTILINE)
MADE = "# Made from _async/{name} by client/tools/faces.py: edit there.\n"

# From asyncio to blocking, in this order.
REPLACEMENTS = [
    (re.compile(pattern), replacement) for pattern, replacement in (
        (r"from sockpq\._async\.getting import PendingJob\n", ""),
        (r"PendingJob\[(.*)\]", r"\1"),
        (r"PendingJob\((.*)\)", r"\1"),
        (r"AsyncIterator, Iterable", "Iterable, Iterator"),
        (r"async def", "def"),
        (r"async with", "with"),
        (r"async for", "for"),
        (r"await ", ""),
        (r"__aiter__", "__iter__"),
        (r"__anext__", "__next__"),
        (r"StopAsyncIteration", "StopIteration"),
        (r"__aenter__", "__enter__"),
        (r"__aexit__", "__exit__"),
        (r"AsyncIterator", "Iterator"),
        (r"AsyncGenerator", "Generator"),
        (r"LoopNetwork", "ThreadNetwork"),
        (r"_backends\.asyncio", "_backends.sync"),
        (r"sockpq\._async", "sockpq._sync"),
        (r"aclosing", "closing"),
        (r"\.aclose\(", ".close("),
        (r"The asyncio client: every", "The blocking client: every"),
    )
]


class Parameter(NamedTuple):
    """One parameter of a declaration."""

    name: str
    type: str
    default: str | None
    keyword: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default is not None else "")


class Call(NamedTuple):
    """One declaration of a call."""

    module: str
    name: str
    parameters: list[Parameter]
    result: str
    documentation: str
    at: str
    flags: set[str]
    settings: list[Parameter]       # of a TypedDict, which is the last parameter


def main(arguments: list[str]) -> int:
    """Write the files, or check them; returns the exit code."""
    options = argparse.ArgumentParser(description="Writes the methods of both clients.")
    options.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is not up to date")
    check = options.parse_args(arguments).check
    stale = [path for path, text in files(PACKAGE) if not path.exists() or path.read_text("utf-8") != text]
    if not check:
        for path, text in files(PACKAGE):
            path.write_text(text, "utf-8")
    for path in stale:
        print(f"{'not up to date' if check else 'written'}: {path.relative_to(PACKAGE)}")
    return 1 if check and stale else 0


def files(package: Path) -> Iterator[tuple[Path, str]]:
    """Yield every generated file, with its content."""
    folder = package / "_protocol" / "commands"
    calls = {name: declarations(folder / f"{file}.py", name) for name, file in MODULES.items()}
    for path in sorted((package / "_async").glob("*.py")):
        text = with_methods(path.read_text("utf-8"), calls)
        yield path, text
        if path.name not in BY_HAND:
            yield package / "_sync" / path.name, blocking(text, path.name)


def declarations(path: Path, module: str) -> list[Call]:
    """Return the calls that a file declares, in order."""
    tree = ast.parse(path.read_text("utf-8"))
    settings = {node.name: _fields(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    return [
        _declaration(node, decorator, module, settings)
        for node in tree.body if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "call"
    ]


def _fields(node: ast.ClassDef) -> list[Parameter]:
    return [
        Parameter(one.target.id, f"{ast.unparse(one.annotation).replace(chr(39), chr(34))} | None", "None", True)
        for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]


def _declaration(
    node: ast.FunctionDef, decorator: ast.Call, module: str, settings: dict[str, list[Parameter]]
) -> Call:
    parameters = []
    positional = node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [(one, default, False) for one, default in zip(positional, defaults, strict=True)]
    pairs += [(one, default, True) for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    expanded: list[Parameter] = []
    for one, default, keyword in pairs:
        assert one.annotation
        written = _source(one.annotation)
        if written in settings:
            expanded = settings[written]
        else:
            parameters.append(Parameter(one.arg, written, default and _source(default), keyword))
    assert node.returns
    at = _source(decorator.args[0]).strip('"') if decorator.args else "leader"
    flags = {str(keyword.arg) for keyword in decorator.keywords}
    documentation = ast.get_docstring(node)
    assert documentation, node.name
    return Call(module, node.name, parameters, _source(node.returns), documentation, at, flags, expanded)


def _source(node: ast.expr) -> str:
    """Return an expression in the client's notation: with double quotes, and its class for a job in hand."""
    return re.sub(r"\bHeldJob\b", "Job", ast.unparse(node).replace("'", '"'))


def with_methods(text: str, calls: dict[str, list[Call]]) -> str:
    """Return the file of an asyncio class with the generated methods inserted."""
    found = DECLARED.search(text)
    if not found:
        return text
    kind = found[1]
    methods = [
        _method(kind, call)
        for module in found[2].split() for call in calls[module]
        if kind == "Client" or kind.lower() in call.flags
    ]
    return text[: found.end()] + "".join(f"\n{method}" for method in methods)


def _method(kind: str, call: Call) -> str:
    """Return one method of the asyncio client."""
    parameters = [one for one in call.parameters if not (kind == "Job" and one.name == "job")]
    given = [f"{one.name}={HELD.get(one.name, one.name)}" if one.keyword else one.name for one in parameters]
    parameters = [one for one in parameters if one.name not in HELD]
    parameters += call.settings
    steps = call.result.startswith("Steps[")
    result = call.result.removeprefix("Steps[" if steps else "Command[").removesuffix("]")
    if call.settings:
        behind = sum(not one.keyword for one in call.parameters)
        given.insert(behind, f"given({', '.join(f'{one.name}={one.name}' for one in call.settings)})")
    extra = []
    run, sent = ("run_steps" if steps else "run"), "timeout=timeout"
    if kind == "Client" and call.at in ("any", "one"):
        typed = Parameter("server", "str | None", "None", bool(call.parameters))
        server = Parameter("server", "str", None, False) if call.at == "one" else typed
        parameters = [server, *parameters] if not server.keyword else [*parameters, server]
        run, sent = "run_where", "server, timeout=timeout"
    elif call.at == "elected":
        run = "run_at_leader"
    if kind != "Transaction":
        extra.append(Parameter("timeout", "float | None", "None", True))
        if "retry" in call.flags and kind == "Client":
            extra.append(Parameter("retry_unknown", "bool | None", "None", True))
            sent += ", retry_unknown=retry_unknown"
    command = [f"{call.module}.{call.name}(", *[f"{one}, " for one in (["self", *given] if kind == "Job" else given)]]
    built = "".join(command).removesuffix(", ") + ")"
    returned = "" if result == "None" else "return "
    if kind == "Transaction":
        ends = f", {parameters[0].name}" if "job" in call.flags or call.name == "delete" else ""
        return _written("def", call.name, [*parameters, *extra], "None", _short(call), _call("self._add", built + ends))
    body = _call(f"{returned}await run(self._router.{run}", f"{built}, {sent}", ")")
    if kind == "Job":
        body = f"        self._ended = True\n{body}"
    documentation = _short(call) if kind == "Job" else call.documentation
    return _written("async def", call.name, [*parameters, *extra], result, documentation, body)


def _short(call: Call) -> str:
    """Return the first paragraph of the documentation, for methods that refer to the rest."""
    first = call.documentation.split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"[.;] |: (?![^(]*\))", first)[0].removesuffix(".")
    return f"{sentence}. See Client.{call.name}."


def _call(function: str, arguments: str, end: str = "") -> str:
    """Return a statement that calls, on one line or with its arguments on separate lines."""
    line = f"        {function}({arguments}){end}"
    if len(line) <= LINE_MAX:
        return f"{line}\n"
    return f"        {function}(\n{_filled(arguments, 12)}        ){end}\n"


def _filled(text: str, indent: int) -> str:
    """Return the arguments, broken after commas so that lines fit."""
    lines = [" " * indent]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) > LINE_MAX - 1:
            lines.append(" " * indent)
        lines[-1] += ("" if lines[-1].isspace() else " ") + word
    return "".join(f"{line}\n" for line in lines)


def _written(
    start: str, name: str, parameters: list[Parameter], result: str, documentation: str, body: str
) -> str:
    """Return the source of a method."""
    parts = ["self", *(str(one) for one in parameters if not one.keyword)]
    keywords = [str(one) for one in parameters if one.keyword]
    if keywords:
        parts += ["*", *keywords]
    head = f"    {start} {name}({', '.join(parts)}) -> {result}:\n"
    if len(head) > LINE_MAX + 1:
        head = f"    {start} {name}(\n{''.join(f'        {part},{chr(10)}' for part in parts)}    ) -> {result}:\n"
    lines = documentation.split("\n")
    text = "\n".join(f"        {line}".rstrip() for line in lines).lstrip()
    if len(lines) == 1 and len(text) + 14 > LINE_MAX:
        cut = text.rindex(" ", 0, LINE_MAX - 12)
        text = f"{text[:cut]}\n        {text[cut + 1:]}"
        lines = text.split("\n")
    end = '"""\n' if len(lines) == 1 else '\n        """\n'
    return f'{head}        """{text}{end}{body}'


def blocking(text: str, name: str) -> str:
    """Return the file of the blocking client that corresponds to one of the asyncio client."""
    for pattern, replacement in REPLACEMENTS:
        text = pattern.sub(replacement, text)
    first, _, rest = text.partition("\n")
    return f"{first}\n\n{MADE.format(name=name)}{IMPORTS.sub(_sorted, rest)}"


def _sorted(imports: re.Match[str]) -> str:
    """Return the imports in the order of the new names."""
    return "".join(sorted(IMPORT.findall(imports[0])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
