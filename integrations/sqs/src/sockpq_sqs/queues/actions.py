"""The actions on queues: create, find, describe, change, purge and delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from sockpq_sqs.call import Call
from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.errors import SqsError, missing, unknown_attribute
from sockpq_sqs.options import Options
from sockpq_sqs.queues import attributes, backing
from sockpq_sqs.queues.entry import Entry
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.pages import page_of
from sockpq_sqs.queues.redrive import ALLOW, NAME, RedrivePolicies, check_allow_policy
from sockpq_sqs.queues.registry import Registry
from sockpq_sqs.queues.tags import check_tags

PURGE_S = 60                # Amazon's: a queue is purged once in this many seconds


class QueueActions:
    """Executes the requests about queues."""

    def __init__(self, names: Names, registry: Registry, options: Options, clock: Callable[[], float]) -> None:
        """`clock`: the Unix time in seconds."""
        self.deleted: Callable[[QueueName], Awaitable[None]] | None = None      # called for each queue that is deleted
        self._names = names
        self._registry = registry
        self._options = options
        self._clock = clock
        self._redrive = RedrivePolicies(names, registry)

    async def create(self, call: Call, request: requests.CreateQueueRequest) -> answers.QueueUrlAnswer:
        """Create a queue, or find the one that has this name and these attributes."""
        given, tags = request.attributes or {}, request.tags or {}
        fifo = given.get("FifoQueue", "").lower() == "true"
        if not fifo and "FifoQueue" in given:
            raise unknown_attribute("FifoQueue")
        queue = self._names.new(call.account, request.queue_name, fifo=fifo)
        found = await self._registry.find(queue, fresh=True)
        if found is None:
            check_tags(queue.name, tags)
            now = int(self._clock())
            entry = await self.changed(call, queue, Entry(created=now, modified=now, tags=tags), given, creating=True)
            await backing.configure(call, queue, entry)     # before the queue is known: it needs the sender's right
            found = await self._registry.add(queue, entry)
            if found == entry:
                return answers.QueueUrlAnswer(queue_url=queue.url(call))
            await backing.configure(call, queue, found)     # another request was faster
        await self._compare(call, queue, found, given)
        return answers.QueueUrlAnswer(queue_url=queue.url(call))

    async def _compare(self, call: Call, queue: QueueName, entry: Entry, given: Mapping[str, str]) -> None:
        """Raise SqsError if the existing queue has another value for one of these attributes."""
        wanted = await self.changed(call, queue, Entry(created=0, modified=0), given, creating=True)
        shown = {**attributes.defaults(fifo=queue.is_fifo), **entry.attributes}
        for name in given:
            if wanted.attributes.get(name, "") != shown.get(name, ""):
                raise SqsError(
                    "QueueNameExists",
                    f"A queue already exists with the same name and a different value for attribute {name}",
                )

    async def url(self, call: Call, request: requests.GetQueueUrlRequest) -> answers.QueueUrlAnswer:
        """Find a queue by its name."""
        account = request.queue_owner_account or call.account
        queue = self._names.new(account, request.queue_name, fifo=request.queue_name.endswith(".fifo"))
        await self._registry.get(queue, fresh=True)
        return answers.QueueUrlAnswer(queue_url=queue.url(call))

    async def list(self, call: Call, request: requests.ListQueuesRequest) -> answers.ListQueuesAnswer:
        """List the queues whose names begin with a prefix, and for which the sender has a right."""
        names = await self._registry.queues(call.account, request.queue_name_prefix or "")
        queues = {name: self._names.queue(call.account, name) for name in names}
        if call.user.name is not None:
            seen = {one.name for one in await call.user.client.queues(self._names.prefix(call.account))}
            names = [name for name in names if queues[name].server in seen]
        page, token = page_of(names, request.max_results, request.next_token)
        return answers.ListQueuesAnswer(queue_urls=[queues[name].url(call) for name in page], next_token=token)

    async def sources(
        self, call: Call, request: requests.ListDeadLetterSourceQueuesRequest,
    ) -> answers.SourceQueuesAnswer:
        """List the queues whose dead letters go to this one."""
        dead = self._names.of_url(call, request.queue_url)
        await self._registry.get(dead)
        await backing.check_any_right(call, dead)
        page, token = page_of(await self._registry.sources(dead), request.max_results, request.next_token)
        urls = [self._names.queue(dead.account, name).url(call) for name in page]
        return answers.SourceQueuesAnswer(queue_urls=urls, next_token=token)

    async def attributes(
        self, call: Call, request: requests.GetQueueAttributesRequest,
    ) -> answers.QueueAttributesAnswer:
        """Read attributes of a queue."""
        queue = self._names.of_url(call, request.queue_url)
        names = attributes.checked_names(request.attribute_names or ())
        entry = await self._registry.get(queue, fresh=True)
        await backing.check_any_right(call, queue)
        found = {**attributes.defaults(fifo=queue.is_fifo), **entry.attributes}
        if found.get("KmsMasterKeyId"):
            found.setdefault("KmsDataKeyReusePeriodSeconds", "300")
        found |= {
            "QueueArn": queue.arn(call.region), "CreatedTimestamp": str(entry.created),
            "LastModifiedTimestamp": str(entry.modified),
        }
        if any(name in attributes.COUNTS for name in names):
            found |= await backing.counts(call, queue)
        return answers.QueueAttributesAnswer(attributes={name: found[name] for name in names if name in found})

    async def set_attributes(self, call: Call, request: requests.SetQueueAttributesRequest) -> answers.Nothing:
        """Change attributes of a queue."""
        queue = self._names.of_url(call, request.queue_url)
        if not request.attributes:
            raise missing("Attribute.Name")

        async def update(entry: Entry) -> Entry:
            changed = await self.changed(call, queue, entry, request.attributes, creating=False)
            await backing.configure(call, queue, changed)
            return changed

        await self._registry.change(queue, update)
        return answers.Nothing()

    async def changed(
        self, call: Call, queue: QueueName, entry: Entry, given: Mapping[str, str], *, creating: bool,
    ) -> Entry:
        """Return the entry with these attributes. Raises SqsError."""
        new = attributes.checked(given, self._options, fifo=queue.is_fifo, creating=creating)
        redrive = entry.redrive
        if NAME in new:
            redrive = None
            if new[NAME]:
                new[NAME], redrive = await self._redrive.redrive(queue, new[NAME], call.region)
        if new.get(ALLOW):
            check_allow_policy(new[ALLOW])
        if new.get("Policy"):
            attributes.check_policy(new["Policy"])
        return replace(
            entry, attributes=attributes.merged(entry.attributes, new), redrive=redrive, modified=int(self._clock()),
        )

    async def purge(self, call: Call, request: requests.PurgeQueueRequest) -> answers.Nothing:
        """Delete the messages of a queue, those in flight too, and forget its deduplication ids."""
        queue = self._names.of_url(call, request.queue_url)
        entry = await self._registry.get(queue)
        await backing.check_right(call, queue)
        if not await self._registry.first_in(PURGE_S, queue, entry):
            raise SqsError(
                "PurgeQueueInProgress",
                f"Only one PurgeQueue operation on {queue.name} is allowed every {PURGE_S} seconds.", 403,
            )
        await backing.purge(call, queue)
        return answers.Nothing()

    async def delete(self, call: Call, request: requests.DeleteQueueRequest) -> answers.Nothing:
        """Delete a queue and its messages. Dead letters that came from it stay where they are."""
        queue = self._names.of_url(call, request.queue_url)
        await self._registry.get(queue)
        await backing.delete(call, queue)
        await self._registry.remove(queue)
        await backing.delete(call, queue)       # with what was sent in between
        if self.deleted:
            await self.deleted(queue)
        return answers.Nothing()
