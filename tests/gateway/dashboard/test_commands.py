"""Commands that are executed without a connection: their answers count for the memory held for clients."""

from __future__ import annotations

from sockpqd.gateway.dashboard.commands import COUNTED_BYTES_MIN, NO_ANSWER, execute
from tests.gateway.helpers.memory import MemoryGateway, with_gateway


def test_nothing_is_held_when_a_command_has_been_answered() -> None:
    async def test(gateway: MemoryGateway) -> None:
        data = bytes(2 * COUNTED_BYTES_MIN)
        await execute(gateway.hub, None, "n2", b"PUT q 0 %d\r\n%b" % (len(data), data))
        most = 0
        hold = gateway.hub.account.hold

        def watch(holder: object, held_bytes: int) -> None:
            nonlocal most
            hold(holder, held_bytes)        # type: ignore[arg-type]
            most = max(most, gateway.hub.account.held_bytes)

        gateway.hub.account.hold = watch    # type: ignore[method-assign, assignment]
        assert (await execute(gateway.hub, None, "n2", b"PEEK q READY\r\n")).startswith(b"200 OK")
        assert most >= len(data)
        assert gateway.hub.account.held_bytes == 0
    with_gateway(test)


def test_an_answer_that_was_cut_off_is_none() -> None:
    async def test(gateway: MemoryGateway) -> None:
        data = bytes(2 * COUNTED_BYTES_MIN)
        await execute(gateway.hub, None, "n2", b"PUT q 0 %d\r\n%b" % (len(data), data))
        gateway.hub.account.limit_bytes = COUNTED_BYTES_MIN
        assert await execute(gateway.hub, None, "n2", b"PEEK q READY\r\n") == NO_ANSWER
        assert gateway.hub.account.held_bytes == 0
    with_gateway(test)
