// The AWS SDK for Java 2, pointed at a service by AWS_ENDPOINT_URL_SQS: java Hello

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.*;

public class Hello {
    static void check(boolean ok, Object what) {
        if (!ok) throw new AssertionError(what);
    }

    static List<Message> receive(SqsClient sqs, String url, int count) {
        return sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(count).waitTimeSeconds(5)
            .messageAttributeNames("All").messageSystemAttributeNames(MessageSystemAttributeName.ALL)).messages();
    }

    public static void main(String[] arguments) {
        try (SqsClient sqs = SqsClient.builder().httpClient(UrlConnectionHttpClient.create()).build()) {
            String name = "hello-java-" + UUID.randomUUID().toString().substring(0, 8);
            String url = sqs.createQueue(r -> r.queueName(name).attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "30"))).queueUrl();
            SdkBytes raw = SdkBytes.fromByteArray(new byte[] {0, 1, (byte) 255});
            Map<String, MessageAttributeValue> attributes = Map.of(
                "lang", MessageAttributeValue.builder().dataType("String").stringValue("java").build(),
                "raw", MessageAttributeValue.builder().dataType("Binary").binaryValue(raw).build());
            String id = sqs.sendMessage(r -> r.queueUrl(url).messageBody("hello").messageAttributes(attributes)).messageId();

            Message message = receive(sqs, url, 1).get(0);
            check(message.body().equals("hello") && message.messageId().equals(id), message);
            check(message.messageAttributes().equals(attributes), message);
            check(message.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT).equals("1"), message);
            String first = message.receiptHandle();
            sqs.changeMessageVisibility(r -> r.queueUrl(url).receiptHandle(first).visibilityTimeout(0));
            message = receive(sqs, url, 1).get(0);
            check(message.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT).equals("2"), message);
            String second = message.receiptHandle();
            sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(second));

            List<SendMessageBatchRequestEntry> entries = new ArrayList<>();
            for (int n = 0; n < 3; n++) entries.add(SendMessageBatchRequestEntry.builder().id("" + n).messageBody("b" + n).build());
            check(sqs.sendMessageBatch(r -> r.queueUrl(url).entries(entries)).successful().size() == 3, "batch");
            List<String> found = new ArrayList<>();
            for (int tries = 0; found.size() < 3 && tries < 10; tries++) {
                List<DeleteMessageBatchRequestEntry> ends = new ArrayList<>();
                for (Message one : receive(sqs, url, 10)) {
                    found.add(one.body());
                    ends.add(DeleteMessageBatchRequestEntry.builder().id("" + ends.size()).receiptHandle(one.receiptHandle()).build());
                }
                if (!ends.isEmpty()) check(sqs.deleteMessageBatch(r -> r.queueUrl(url).entries(ends)).failed().isEmpty(), "delete");
            }
            found.sort(null);
            check(found.equals(List.of("b0", "b1", "b2")), found);
            try {
                sqs.getQueueUrl(r -> r.queueName("none-" + name));
                check(false, "there is a queue that was never created");
            } catch (QueueDoesNotExistException expected) {
            }

            String fifo = sqs.createQueue(r -> r.queueName(name + ".fifo").attributes(Map.of(QueueAttributeName.FIFO_QUEUE, "true"))).queueUrl();
            for (int n : new int[] {0, 1, 1, 2}) {
                sqs.sendMessage(r -> r.queueUrl(fifo).messageBody("f" + n).messageGroupId("g").messageDeduplicationId("d" + n));
            }
            List<String> order = new ArrayList<>();
            while (order.size() < 3) {
                List<Message> some = receive(sqs, fifo, 10);
                check(!some.isEmpty(), order);
                for (Message one : some) {
                    order.add(one.body());
                    sqs.deleteMessage(r -> r.queueUrl(fifo).receiptHandle(one.receiptHandle()));
                }
            }
            check(order.equals(List.of("f0", "f1", "f2")), order);
            for (String queue : List.of(url, fifo)) sqs.deleteQueue(r -> r.queueUrl(queue));
            System.out.println("ok java");
        }
    }
}
