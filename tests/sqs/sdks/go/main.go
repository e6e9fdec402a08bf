// The AWS SDK for Go 2, pointed at a service by AWS_ENDPOINT_URL_SQS: go run .
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func check(ok bool, format string, values ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, "failed: "+format+"\n", values...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

func main() {
	ctx := context.Background()
	settings := must(config.LoadDefaultConfig(ctx))
	client := sqs.NewFromConfig(settings)
	name := fmt.Sprintf("hello-go-%x", time.Now().UnixNano()&0xffffffff)
	url := must(client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "30"}})).QueueUrl
	sent := must(client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: aws.String("hello"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"lang": {DataType: aws.String("String"), StringValue: aws.String("go")},
			"raw":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
		}}))
	receive := func(queue *string, count int32) []types.Message {
		return must(client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: queue, MaxNumberOfMessages: count, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}})).Messages
	}
	messages := receive(url, 1)
	check(len(messages) == 1 && *messages[0].Body == "hello" && *messages[0].MessageId == *sent.MessageId, "first receive %v", messages)
	check(bytes.Equal(messages[0].MessageAttributes["raw"].BinaryValue, []byte{0, 1, 255}), "binary attribute")
	check(messages[0].Attributes["ApproximateReceiveCount"] == "1", "receive count")
	must(client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: url, ReceiptHandle: messages[0].ReceiptHandle, VisibilityTimeout: 0}))
	messages = receive(url, 1)
	check(len(messages) == 1 && messages[0].Attributes["ApproximateReceiveCount"] == "2", "second receive %v", messages)
	must(client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: messages[0].ReceiptHandle}))

	var entries []types.SendMessageBatchRequestEntry
	for n := 0; n < 3; n++ {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(fmt.Sprint(n)), MessageBody: aws.String(fmt.Sprintf("b%d", n))})
	}
	batch := must(client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: entries}))
	check(len(batch.Successful) == 3 && len(batch.Failed) == 0, "batch %v", batch)
	var found []string
	for tries := 0; len(found) < 3 && tries < 10; tries++ {
		var ends []types.DeleteMessageBatchRequestEntry
		for n, one := range receive(url, 10) {
			found = append(found, *one.Body)
			ends = append(ends, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(n)), ReceiptHandle: one.ReceiptHandle})
		}
		if len(ends) > 0 {
			done := must(client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: ends}))
			check(len(done.Failed) == 0, "delete batch %v", done.Failed)
		}
	}
	sort.Strings(found)
	check(strings.Join(found, " ") == "b0 b1 b2", "batch %v", found)
	_, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("none-" + name)})
	var missing *types.QueueDoesNotExist
	check(errors.As(err, &missing), "error %v", err)

	fifo := must(client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String(name + ".fifo"), Attributes: map[string]string{"FifoQueue": "true"}})).QueueUrl
	for _, n := range []int{0, 1, 1, 2} {
		must(client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: fifo, MessageBody: aws.String(fmt.Sprintf("f%d", n)), MessageGroupId: aws.String("g"),
			MessageDeduplicationId: aws.String(fmt.Sprintf("d%d", n))}))
	}
	var order []string
	for len(order) < 3 {
		some := receive(fifo, 10)
		check(len(some) > 0, "only %v", order)
		for _, one := range some {
			order = append(order, *one.Body)
			must(client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: fifo, ReceiptHandle: one.ReceiptHandle}))
		}
	}
	check(strings.Join(order, " ") == "f0 f1 f2", "order %v", order)
	for _, queue := range []*string{url, fifo} {
		must(client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: queue}))
	}
	fmt.Println("ok go")
}
