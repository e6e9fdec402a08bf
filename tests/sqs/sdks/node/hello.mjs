// The AWS SDK for JavaScript 3, pointed at a service by AWS_ENDPOINT_URL_SQS: node hello.mjs
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  ChangeMessageVisibilityCommand, CreateQueueCommand, DeleteMessageBatchCommand, DeleteMessageCommand, DeleteQueueCommand,
  GetQueueAttributesCommand, GetQueueUrlCommand, QueueDoesNotExist, ReceiveMessageCommand, SendMessageBatchCommand,
  SendMessageCommand, SQSClient,
} from "@aws-sdk/client-sqs";

const sqs = new SQSClient({});
const name = "hello-node-" + randomUUID().slice(0, 8);
const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: { VisibilityTimeout: "30" } }));
const MessageAttributes = {
  lang: { DataType: "String", StringValue: "node" },
  n: { DataType: "Number", StringValue: "17" },
  raw: { DataType: "Binary", BinaryValue: new Uint8Array([0, 1, 255]) },
};
const sent = await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "hello grün", MessageAttributes }));

async function receive(url, MaxNumberOfMessages = 1) {
  const answer = await sqs.send(new ReceiveMessageCommand({
    QueueUrl: url, MaxNumberOfMessages, WaitTimeSeconds: 5, MessageAttributeNames: ["All"],
    MessageSystemAttributeNames: ["All"],
  }));
  return answer.Messages ?? [];
}

let [message] = await receive(QueueUrl);
assert.equal(message.Body, "hello grün");
assert.equal(message.MessageId, sent.MessageId);
assert.equal(message.MessageAttributes.n.StringValue, "17");
assert.deepEqual([...message.MessageAttributes.raw.BinaryValue], [0, 1, 255]);
assert.equal(message.Attributes.ApproximateReceiveCount, "1");
await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: 0 }));
[message] = await receive(QueueUrl);
assert.equal(message.Attributes.ApproximateReceiveCount, "2");
await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));

const batch = await sqs.send(new SendMessageBatchCommand({
  QueueUrl, Entries: [0, 1, 2].map((n) => ({ Id: String(n), MessageBody: "b" + n })),
}));
assert.equal(batch.Successful.length, 3);
let found = [];
for (let tries = 0; found.length < 3 && tries < 10; tries++) {
  const some = await receive(QueueUrl, 10);
  found.push(...some.map((one) => one.Body));
  if (some.length) {
    const done = await sqs.send(new DeleteMessageBatchCommand({
      QueueUrl, Entries: some.map((one, n) => ({ Id: String(n), ReceiptHandle: one.ReceiptHandle })),
    }));
    assert.equal((done.Failed ?? []).length, 0);
  }
}
assert.deepEqual(found.sort(), ["b0", "b1", "b2"]);
const counts = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["ApproximateNumberOfMessages"] }));
assert.equal(counts.Attributes.ApproximateNumberOfMessages, "0");
await assert.rejects(sqs.send(new GetQueueUrlCommand({ QueueName: "none-" + name })), QueueDoesNotExist);

const { QueueUrl: fifo } = await sqs.send(new CreateQueueCommand({ QueueName: name + ".fifo", Attributes: { FifoQueue: "true" } }));
for (const n of [0, 1, 1, 2]) {
  await sqs.send(new SendMessageCommand({ QueueUrl: fifo, MessageBody: "f" + n, MessageGroupId: "g", MessageDeduplicationId: "d" + n }));
}
const order = [];
while (order.length < 3) {
  const some = await receive(fifo, 10);
  assert.notEqual(some.length, 0, String(order));
  for (const one of some) {
    order.push(one.Body);
    await sqs.send(new DeleteMessageCommand({ QueueUrl: fifo, ReceiptHandle: one.ReceiptHandle }));
  }
}
assert.deepEqual(order, ["f0", "f1", "f2"]);
for (const url of [QueueUrl, fifo]) await sqs.send(new DeleteQueueCommand({ QueueUrl: url }));
console.log("ok node");
