"""Docstrings, comments, messages and documents are written as an English engineer writes them."""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from tests.statements import statements

ROOT = Path(__file__).parents[1]

DONE = (
    "cluster", "core", "connections", "gateway", "beanstalk", "beanstalk_proxy", "pqctl", "client", "devcluster",
    "deploy", "bench", "integrations", "examples",
)
# Tests of which each docstring is checked.
TESTS = tuple(
    path for path in sorted((ROOT / "tests").rglob("*.py"))
    if path.relative_to(ROOT / "tests").parts[0] not in ("http", "sqs", "browser", "hostile")
)
DOCUMENTS = ("*.md", "docs/*.md", "docs/design/*.md", "docs/spec/*.md", "client/*.md", "integrations/*/*.md")

# Words of a translation, with what to write instead.
WORDS = {
    r"anew": "again, from scratch, re-",
    r"whoever": "a client that, any node that",
    r"for want of": "because there is no",
    r"told": "reported, notified, sent",
    r"said": "reported, sent",
    r"under way": "in flight, in progress",
    r"beside the (?:loop|log|program)": "in the background, outside",
    r"all the same": "still, nevertheless",
    r"so (?:many|much) \w+ (?:is|are|was|were)": "the number of",
    r"what becomes of": "the outcome of",
    r"so (?:many|much|long) (?:at most|more|less)": "at most this many, up to `n`",
    r"of late": "recent",
    r"small letters": "lower case",
    r"by and by": "gradually",
    r"all the while": "throughout",
    r"seldom": "rarely",
    r"follow that": "apply, note that",
    r"(?:that|those) of (?:the|a|an|its|their)": "repeat the noun, or 's",
}
DENIED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)

# A first line names the thing, or begins with a verb.
CLAUSE = re.compile(
    r"(?:What|Which|Whose|Who|Whether|How|Where|When|Nobody|Somebody)\b"
    r"|(?:At|By|For|From|In|To|Up to) (?:how|what|when|which)\b"
)
HELPER = re.compile(
    r"(?:What|Which|Whose|Who|Whether|How|Where|When|Until|Those)\b"
    r"|(?:At|By|For|From|In|To|Up to) (?:how|what|when|which)\b"
)
# "Return whether .." instead of "Is it ..?"; a `?` in code is no question.
QUESTION = re.compile(r"\?(?=\s|$)")
# Without any of these a file has no such first line of a helper, and need not be parsed.
SUSPECT = re.compile(rf"[\"']\s*(?:{HELPER.pattern})|\?")
# A function does something: "Handle a message", not "A message has come". The words before the verb are the subject
# only if no clause or preposition is among them, as in "The job that is due next".
_SUBJECT = r"(?:An?|The|Its?|One|This|Some|These|Messages?|Everything|Nothing|Time|All|Too much|Others|There)\b"
_PLAIN = (
    r"(?:(?!(?:that|which|who|whose|where|what|when|with|without|than|as|for|by|to|in|if|until|since|it|this|they|we)"
    r"\b)[\w'`()-]+ ){0,4}?"
)
EVENT = re.compile(rf"{_SUBJECT} {_PLAIN}(?:has|have|had|is|are|was|were|came|may|must|will|can)\b")
# A function that returns nothing is named by what it does.
THING = re.compile(r"(?:The|An?|Its|All|One|This|These|Those|There|Each|Every|Some|Any|It|Many)\b")
CODE = re.compile(r"`[^`]*`")
# Between two parts of a string that is written in several.
SEAM = re.compile(r"[\"']\s*[rRfFbBuU]{0,2}[\"']")


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documented(tree: ast.AST) -> Iterator[tuple[Documented, str]]:
    """The nodes of a module that have docstrings, with these."""
    for node in statements(tree):
        if isinstance(node, Documented):
            text = ast.get_docstring(node)
            if text is not None:
                yield node, text


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The docstrings in a module, with the lines on which they begin."""
    return ((node.body[0].lineno, text) for node, text in documented(tree))


def only_acts(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a call of the function has no result: it is none of a generator, a class or a decorator."""
    named = node.returns is None or not isinstance(node.returns, ast.Constant) or node.returns.value is not None
    if named or node.decorator_list or node.name == "__init__":
        return False
    return not any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node))


def translated(source: str) -> list[tuple[int, str]]:
    """The words, and the first lines, of docstrings that are not English, each with its line."""
    found = []
    for node, text in documented(ast.parse(source)):
        line, first, prose = node.body[0].lineno, text.splitlines()[0], CODE.sub("", text)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        acts = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and only_acts(node)
        if CLAUSE.match(text) or QUESTION.search(prose) or (is_function and EVENT.match(first)) or (
            acts and THING.match(first)
        ):
            found.append((line, first))
        found += [(line, word) for word in DENIED.findall(prose)]
    return found


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """The comments, and the messages, in a module, with their lines, if any of them may have a denied word."""
    if any(DENIED.search(line, line.index("#")) for line in source.splitlines() if "#" in line):
        for token in tokenize.generate_tokens(StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    if not DENIED.search(SEAM.sub("", source)):
        return
    tree = ast.parse(source)
    known = {text for _, text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(text := node.value, str) and " " in text.strip():
            yield from [(node.lineno, text)] * (inspect.cleandoc(text) not in known)


def denied(text: str) -> list[str]:
    """The words of translations in a text, outside code."""
    return DENIED.findall(CODE.sub("", text))


@pytest.mark.parametrize("package", DONE)
def test_docstrings_are_english(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {path.relative_to(ROOT).as_posix(): translated(path.read_text()) for path in files}
    assert {path: words for path, words in found.items() if words} == {}


def test_docstrings_of_tests_are_english() -> None:
    """Tests are sentences, and so may be their docstrings; but a module is named, as in the product."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in TESTS
        if DENIED.search(source := path.read_text()) or CLAUSE.match(source.removeprefix('"""'))
        for node, text in documented(ast.parse(source))
        for line, words in [
            *((node.body[0].lineno, word) for word in denied(text)),
            *([(1, text.splitlines()[0])] if isinstance(node, ast.Module) and CLAUSE.match(text) else []),
        ]
    ]
    assert found == []


def test_helpers_of_tests_say_what_they_do() -> None:
    """Functions do or return something, classes are something; what explains a test may be any sentence."""
    found = [
        f"{path.relative_to(ROOT)}:{node.body[0].lineno}: {text.splitlines()[0]}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if SUSPECT.search(source := path.read_text())
        for node, text in documented(ast.parse(source))
        if not isinstance(node, ast.Module) and not node.name.startswith("test_")
        if HELPER.match(text) or QUESTION.search(CODE.sub("", text.splitlines()[0]))
    ]
    assert found == []


@pytest.mark.parametrize("package", DONE)
def test_comments_and_messages_are_english(package: str) -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), line, word)
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in remarks(path.read_text())
        for word in denied(text)
    ]
    assert found == []


def test_documents_are_english() -> None:
    paths = {path for pattern in DOCUMENTS for path in ROOT.glob(pattern)} - {ROOT / "CHANGELOG.md"}
    assert len(paths) > 20
    lines = [(path.name, line, text) for path in paths for line, text in enumerate(path.read_text().splitlines(), 1)]
    assert [(name, line, word) for name, line, text in lines for word in denied(text)] == []


def test_each_kind_is_found() -> None:
    assert translated('"""What is there."""\n') == [(1, "What is there.")]
    assert translated('def f():\n    """Begin anew, and that is\n\n    Told to all."""\n') == [(2, "anew"), (2, "Told")]
    assert translated('def f(told):\n    """`told` is called; Whatever else."""\n') == []
    assert translated('"""Its length, and that of the other."""') == [(1, "that of the")]


@pytest.mark.parametrize(
    "text",
    [
        "Is nothing queued?", "Send it; was one taken?", "How many there are.", "Where they go.",
        "In how many seconds it ends.", "Begin.\n\n    Is it late? Then end.",
        "A message of NOTIFY has come.", "The write buffer has emptied.", "It was worked on.", "Time may have passed.",
    ],
)
def test_a_question_or_an_event_is_no_first_line(text: str) -> None:
    assert translated(f'def f():\n    """{text}"""\n') == [(2, text.splitlines()[0])]


@pytest.mark.parametrize(
    "text",
    [
        "Return whether nothing is queued.", "The part behind `?`, or `a?b`.", "The job that is due next.",
        "Handle a message that has come.", "The number of jobs when there is one.", "Send `HELP ?`.",
    ],
)
def test_a_verb_or_a_noun_phrase_is_a_first_line(text: str) -> None:
    assert translated(f'def f():\n    """{text}"""\n') == []


def test_remarks_are_comments_and_messages() -> None:
    assert list(remarks('"""Told so."""\nx = f"{told} is said"      # whoever\ny = "told"\n')) == [
        (2, "# whoever"), (2, " is said"),
    ]
    assert list(remarks('x = ("It goes on beside "\n     "the loop.")\n')) == [(1, "It goes on beside the loop.")]
    assert denied("`told` is whoever said it") == ["whoever", "said"]
