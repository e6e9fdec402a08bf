"""A call that writes at servers of a copy in another region: its error says that, and who takes writes."""

from __future__ import annotations

import pytest
from sockpq import Client, Refused, Unavailable
from sockpq._engine.probe import Response
from sockpq._engine.region import region_part
from sockpq._protocol.protocol import Answer
from sockpq.errors import BadArguments
from sockpq.model import ReplicaStatus

from tests.client.conftest import MakeClient
from tests.client.memory_cluster import MemoryCluster

ORIGIN = "0011223344556677"
FOLLOWING = f"200 OK following 17 {ORIGIN} 17 5 10.1.0.1:11361 -\r\n".encode()
TIMEOUT_S = 6.0         # of a call that cannot succeed; it asks why after one second


def refusal(cluster: MemoryCluster, make_client: MakeClient, replica: bytes) -> str:
    """Return the error of a call at servers that refuse to write, and answer this to CLUSTER REPLICA."""
    cluster.say("QUEUE", b"500 Offline Mode\r\n")
    cluster.say("CLUSTER REPLICA", replica)
    client: Client = make_client(cluster.addresses, timeout=TIMEOUT_S)
    with pytest.raises(Unavailable) as refused:
        client.queue_pause("mail")
    return str(refused.value)


def test_it_names_the_origin_of_the_copy(cluster: MemoryCluster, make_client: MakeClient) -> None:
    error = refusal(cluster, make_client, FOLLOWING)
    assert f"these servers are a copy in another region, and only cluster {ORIGIN} takes writes" in error
    assert error.endswith("(last: 500 Offline Mode)")


def test_at_servers_that_are_no_copy_it_says_what_they_said(cluster: MemoryCluster, make_client: MakeClient) -> None:
    error = refusal(cluster, make_client, b"409 No Replica\r\n")
    assert error == "no server executed the command before the deadline; last: 500 Offline Mode"


def answered(answer: Answer) -> Response:
    return Response(None, [answer], None)


@pytest.mark.parametrize(("answer", "words"), [
    (Answer(ReplicaStatus("idle", 17, ORIGIN, None, None, None, "")), f"only cluster {ORIGIN} takes writes: name"),
    (Answer(ReplicaStatus("following", 17, ORIGIN, 17, 0.1, "10.1.0.1:11361", "")), "writes, as at 10.1.0.1:11361: "),
    (Answer(ReplicaStatus("connecting", 0, None, None, None, None, "")), "only its origin takes writes"),
    (Answer(None, Refused(f"409 Fenced {ORIGIN}")), f"their copy, the cluster {ORIGIN}, takes writes"),
])
def test_the_answers_of_a_copy_and_of_a_fenced_cluster_in_words(answer: Answer, words: str) -> None:
    silent = Response(None, [], TimeoutError())
    assert words in region_part([silent, answered(answer)])


def test_other_answers_say_nothing() -> None:
    answers = Answer(None), Answer(None, Refused("409 No Replica")), Answer(None, BadArguments("400 Bad Command"))
    assert region_part(map(answered, answers)) == ""
