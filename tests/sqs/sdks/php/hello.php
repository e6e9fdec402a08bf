<?php
// AsyncAws, the SDK for PHP that Debian has (php-async-aws-sqs 1, which speaks the Query protocol): php hello.php
foreach (['/usr/share/php/AsyncAws/Sqs/autoload.php', getenv('PHP_AUTOLOAD') ?: ''] as $file) {
    if ($file && file_exists($file)) require_once $file;
}
foreach (['/usr/share/php/Symfony/Component/HttpClient/autoload.php'] as $file) {
    if (file_exists($file)) require_once $file;
}

use AsyncAws\Core\Exception\Http\HttpException;
use AsyncAws\Sqs\SqsClient;

function check($ok, $what) {
    if (!$ok) { fwrite(STDERR, 'failed: ' . print_r($what, true) . "\n"); exit(1); }
}

$sqs = new SqsClient(['endpoint' => getenv('AWS_ENDPOINT_URL_SQS'), 'region' => 'us-east-1', 'accessKeyId' => getenv('AWS_ACCESS_KEY_ID') ?: 'test',
    'accessKeySecret' => getenv('AWS_SECRET_ACCESS_KEY') ?: 'test-secret-test-secret']);
$name = 'hello-php-' . bin2hex(random_bytes(4));
$url = $sqs->createQueue(['QueueName' => $name, 'Attributes' => ['VisibilityTimeout' => '30']])->getQueueUrl();
$sent = $sqs->sendMessage(['QueueUrl' => $url, 'MessageBody' => 'hello <grün>', 'MessageAttributes' => [
    'lang' => ['DataType' => 'String', 'StringValue' => 'php'], 'raw' => ['DataType' => 'Binary', 'BinaryValue' => "\x00\x01\xff"]]]);
$id = $sent->getMessageId();
$receive = fn($queue, $count = 1) => $sqs->receiveMessage(['QueueUrl' => $queue, 'MaxNumberOfMessages' => $count, 'WaitTimeSeconds' => 5,
    'MessageAttributeNames' => ['All'], 'AttributeNames' => ['All']])->getMessages();
[$message] = $receive($url);
check($message->getBody() === 'hello <grün>' && $message->getMessageId() === $id, $message);
check($message->getMessageAttributes()['raw']->getBinaryValue() === "\x00\x01\xff", $message);
check($message->getAttributes()['ApproximateReceiveCount'] === '1', $message);
$sqs->changeMessageVisibility(['QueueUrl' => $url, 'ReceiptHandle' => $message->getReceiptHandle(), 'VisibilityTimeout' => 0])->resolve();
[$message] = $receive($url);
check($message->getAttributes()['ApproximateReceiveCount'] === '2', $message);
$sqs->deleteMessage(['QueueUrl' => $url, 'ReceiptHandle' => $message->getReceiptHandle()])->resolve();

$entries = array_map(fn($n) => ['Id' => "$n", 'MessageBody' => "b$n"], range(0, 2));
check(count($sqs->sendMessageBatch(['QueueUrl' => $url, 'Entries' => $entries])->getSuccessful()) === 3, 'batch');
$found = [];
for ($tries = 0; count($found) < 3 && $tries < 10; $tries++) {
    $ends = [];
    foreach ($receive($url, 10) as $one) {
        $found[] = $one->getBody();
        $ends[] = ['Id' => (string) count($ends), 'ReceiptHandle' => $one->getReceiptHandle()];
    }
    if ($ends) check(count($sqs->deleteMessageBatch(['QueueUrl' => $url, 'Entries' => $ends])->getFailed()) === 0, 'delete batch');
}
sort($found);
check($found === ['b0', 'b1', 'b2'], $found);
try {
    $sqs->getQueueUrl(['QueueName' => "none-$name"])->getQueueUrl();
    check(false, 'there is a queue that was never created');
} catch (HttpException $expected) {
    check(strpos($expected->getMessage(), 'NonExistentQueue') !== false || strpos($expected->getMessage(), 'QueueDoesNotExist') !== false, $expected->getMessage());
}

$fifo = $sqs->createQueue(['QueueName' => "$name.fifo", 'Attributes' => ['FifoQueue' => 'true']])->getQueueUrl();
foreach ([0, 1, 1, 2] as $n) {
    $sqs->sendMessage(['QueueUrl' => $fifo, 'MessageBody' => "f$n", 'MessageGroupId' => 'g', 'MessageDeduplicationId' => "d$n"])->resolve();
}
$order = [];
while (count($order) < 3) {
    $some = $receive($fifo, 10);
    check(count($some) > 0, $order);
    foreach ($some as $one) {
        $order[] = $one->getBody();
        $sqs->deleteMessage(['QueueUrl' => $fifo, 'ReceiptHandle' => $one->getReceiptHandle()])->resolve();
    }
}
check($order === ['f0', 'f1', 'f2'], $order);
foreach ([$url, $fifo] as $queue) $sqs->deleteQueue(['QueueUrl' => $queue])->resolve();
echo "ok php\n";
