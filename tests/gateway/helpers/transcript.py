"""Transcripts: conversations with the gateway as text files.

    # a comment, up to the end of the line
    > PUT q 0 3         the client sends this line and CRLF
    >| abc              the client sends these bytes, nothing added
    >* 70000 x          the client sends 70000 times these bytes
    >.                  the client sends its last byte (FIN)
    >!                  the connection breaks
    < 200 OK            the server sends this line and CRLF
    <| abc              the server sends these bytes
    <* 300 x            the server sends 300 times these bytes
    <.                  the server closes

`\\r \\n \\t \\\\ \\xNN` stand for bytes. `B > ..` and `B < ..` speak of connection B; without a name it is A. A
connection opens when it is first spoken of. Directly behind each `>` line and each directive stand all answers it
brings about, of each connection; a test fails when one is missing or too many. Directives:

    @limits data_bytes_max=10 ..    at the top: other limits than the usual
    @user mail put:mail*,get KEY    at the top: a user of the users file, with this key
    @insecure B | @legacy B mail    B connects without TLS from afar; on a port for clients of user `mail`
    @follow n2 | @follow            n2 leads, or nobody is known to lead
    @lead                           this node leads again
    @time 60                        seconds go by
    @hold                           from here on nothing is committed by itself
    @commit | @refuse | @lose       what is in flight is executed; is not executed; has an unknown fate
    @commit 1                       the first of the operations in flight is executed
    @impossible quorum | @impossible   CLUSTER REMOVE and TRANSFER are refused for this reason; are no longer refused
    @broken_disk                    nothing can be written
    @returned 1 2                   since the last such line these hand-outs were undone
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.limits import Limits
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

_SPEECH = re.compile(r"(?:(?P<who>[A-Z]) )?(?P<way>[<>])(?P<kind>[|*.!]?)(?: (?P<text>.*))?")
_HANDED = re.compile(rb"200 OK [A-Za-z_]\S* \d+ -?\d+ (\d+)(?: IS \S+)?")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
_ESCAPES = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\"}


class Transcript:
    """The lines of a file, and their conversation."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    async def run(self, folder: Path) -> list[str]:
        """Hold the conversation; returns the lines as they should be, with the server's real words."""
        player = _Player(folder, self._limits(), self._users())
        result: list[str] = []
        for line in self.lines:
            if not _is_answer(line):
                result.append(line)
                await player.act(line)
                result += player.answers()
        await player.close()
        return result

    def _limits(self) -> Limits:
        for line in self.lines:
            if line.startswith("@limits "):
                return msgspec.convert(dict(pair.split("=") for pair in line.split()[1:]), Limits, strict=False)
        return Limits()

    def _users(self) -> dict[str, Account] | None:
        users = [line.split()[1:] for line in self.lines if line.startswith("@user ")]
        return {name: Account(rights.of_text(text), key.encode()) for name, text, key in users} or None


def _is_answer(line: str) -> bool:
    match = _SPEECH.fullmatch(line)
    return match is not None and match["way"] == "<"


class _Player:
    def __init__(self, folder: Path, limits: Limits, users: dict[str, Account] | None) -> None:
        self._gateway = MemoryGateway(folder, limits, users)
        self._clients: dict[str, MemoryClient] = {}
        self._gone: set[str] = set()
        self._returned = 0

    async def act(self, line: str) -> None:
        """Execute one line of a transcript: speech, or a direction that begins with @."""
        speech = _SPEECH.fullmatch(line)
        if speech is not None:
            self._speak(speech)
        elif line.startswith("@"):
            self._direct(*line[1:].split())
        else:
            assert not line or line.startswith("#"), f"cannot be read: {line}"
        await self._gateway.settle()

    def _speak(self, speech: re.Match[str]) -> None:
        name = speech["who"] or "A"
        if name not in self._clients:
            self._clients[name] = self._gateway.connect(name)
        client, text = self._clients[name], speech["text"] or ""
        match speech["kind"]:
            case "":
                client.send(_bytes(text) + b"\r\n")
            case "|":
                client.send(_bytes(text))
            case "*":
                count, what = text.split(" ", 1)
                client.send(_bytes(what) * int(count))
            case ".":
                client.end()
            case _:
                client.vanish()
                self._gone.add(name)

    def _direct(self, word: str, *arguments: str) -> None:
        cluster = self._gateway.cluster
        match word:
            case "limits" | "user":
                pass
            case "insecure":
                self._clients[arguments[0]] = self._gateway.connect(arguments[0], secure=False)
            case "legacy":
                self._clients[arguments[0]] = self._gateway.connect(arguments[0], arguments[1])
            case "follow":
                cluster.follow(arguments[0] if arguments else None)
            case "time":
                cluster.pass_time(float(arguments[0]))
            case "hold":
                cluster.automatic = False
            case "impossible":
                cluster.impossible = arguments[0] if arguments else None
            case "broken_disk":
                cluster.broken_disk = True
            case "returned":
                ids = returned(cluster)
                assert ids[self._returned:] == [int(text) for text in arguments], f"returned: {ids[self._returned:]}"
                self._returned = len(ids)
            case "commit":
                cluster.commit(int(arguments[0]) if arguments else None)
            case "lead" | "refuse" | "lose":
                getattr(cluster, word)()
            case _:
                raise AssertionError(f"no directive @{word}")

    def answers(self) -> Iterator[str]:
        """Return the lines for what each connection got since the last call."""
        for name, client in sorted(self._clients.items()):
            who = "" if name == "A" else f"{name} "
            yield from (f"{who}{line}" for line in _lines(client.take()))
            if client.closed and name not in self._gone:
                self._gone.add(name)
                yield f"{who}<."

    async def close(self) -> None:
        """End the conversation."""
        await self._gateway.close()


def _bytes(text: str) -> bytes:
    def value(match: re.Match[bytes]) -> bytes:
        return bytes.fromhex(match[1].decode()) if match[1] else _ESCAPES[match[2]]
    return _ESCAPE.sub(value, text.encode("ascii"))


def _text(data: bytes) -> str:
    letters = []
    for byte in data:
        known = {13: "\\r", 10: "\\n", 9: "\\t", 92: "\\\\"}.get(byte)
        letters.append(known or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"))
    return "".join(letters)


def _lines(data: bytes) -> Iterator[str]:
    while data:
        line, end, data = data.partition(b"\r\n")
        yield f"< {_text(line)}" if end else f"<| {_text(line)}"
        if job := _HANDED.fullmatch(line):
            block, data = data[:int(job[1])], data[int(job[1]):]
            if len(block) > 100 and len(set(block)) == 1:
                yield f"<* {len(block)} {_text(block[:1])}"
            elif block:
                yield f"<| {_text(block)}"
