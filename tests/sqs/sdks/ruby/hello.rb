# The AWS SDK for Ruby: ruby hello.rb
# Version 3 (gem aws-sdk-sqs) if there is one. Debian has only version 1 (package ruby-aws-sdk), which speaks the Query protocol.
require 'securerandom'
require 'uri'
endpoint = ENV['AWS_ENDPOINT_URL_SQS']
name = "hello-ruby-#{SecureRandom.hex(4)}"

def check(ok, what)
  abort "failed: #{what.inspect}" unless ok
end

begin
  require 'aws-sdk-sqs'
rescue LoadError
  begin
    require 'aws-sdk-v1'
  rescue LoadError
    abort 'no AWS SDK'
  end
end

if defined?(Aws::SQS)
  sqs = Aws::SQS::Client.new
  url = sqs.create_queue(queue_name: name, attributes: { 'VisibilityTimeout' => '30' }).queue_url
  receive = lambda do |queue, count = 1|
    sqs.receive_message(queue_url: queue, max_number_of_messages: count, wait_time_seconds: 5,
                        message_attribute_names: ['All'], attribute_names: ['All']).messages
  end
  sent = sqs.send_message(queue_url: url, message_body: 'hello', message_attributes: {
    'lang' => { data_type: 'String', string_value: 'ruby' }, 'raw' => { data_type: 'Binary', binary_value: "\x00\x01\xff".b } })
  message, = receive.call(url)
  check(message.body == 'hello' && message.message_id == sent.message_id, message)
  check(message.message_attributes['raw'].binary_value.b == "\x00\x01\xff".b, message)
  check(message.attributes['ApproximateReceiveCount'] == '1', message)
  sqs.change_message_visibility(queue_url: url, receipt_handle: message.receipt_handle, visibility_timeout: 0)
  message, = receive.call(url)
  check(message.attributes['ApproximateReceiveCount'] == '2', message)
  sqs.delete_message(queue_url: url, receipt_handle: message.receipt_handle)
  sqs.send_message_batch(queue_url: url, entries: (0..2).map { |n| { id: n.to_s, message_body: "b#{n}" } })
  found = []
  10.times do
    some = receive.call(url, 10)
    found += some.map(&:body)
    sqs.delete_message_batch(queue_url: url, entries: some.each_with_index.map { |m, n| { id: n.to_s, receipt_handle: m.receipt_handle } }) unless some.empty?
    break if found.size == 3
  end
  check(found.sort == %w[b0 b1 b2], found)
  begin
    sqs.get_queue_url(queue_name: "none-#{name}")
    abort 'there is a queue that was never created'
  rescue Aws::SQS::Errors::ServiceError => e
    check(e.code =~ /NonExistentQueue|QueueDoesNotExist/, e.code)
  end
  fifo = sqs.create_queue(queue_name: "#{name}.fifo", attributes: { 'FifoQueue' => 'true' }).queue_url
  [0, 1, 1, 2].each { |n| sqs.send_message(queue_url: fifo, message_body: "f#{n}", message_group_id: 'g', message_deduplication_id: "d#{n}") }
  order = []
  while order.size < 3
    some = receive.call(fifo, 10)
    check(!some.empty?, order)
    some.each { |m| order << m.body; sqs.delete_message(queue_url: fifo, receipt_handle: m.receipt_handle) }
  end
  check(order == %w[f0 f1 f2], order)
  [url, fifo].each { |queue| sqs.delete_queue(queue_url: queue) }
  puts 'ok ruby 3'
else
  uri = URI(endpoint)
  sqs = AWS::SQS.new(sqs_endpoint: uri.host, sqs_port: uri.port, use_ssl: false, sqs_region: 'us-east-1',
                     access_key_id: ENV['AWS_ACCESS_KEY_ID'] || 'test',
                     secret_access_key: ENV['AWS_SECRET_ACCESS_KEY'] || 'test-secret-test-secret').client
  url = sqs.create_queue(queue_name: name, attributes: { 'VisibilityTimeout' => '30' })[:queue_url]
  sent = sqs.send_message(queue_url: url, message_body: 'hello')
  message = sqs.receive_message(queue_url: url, wait_time_seconds: 5, attribute_names: ['All'])[:messages][0]
  check(message[:body] == 'hello' && message[:message_id] == sent[:message_id], message)
  sqs.change_message_visibility(queue_url: url, receipt_handle: message[:receipt_handle], visibility_timeout: 0)
  message = sqs.receive_message(queue_url: url, wait_time_seconds: 5, attribute_names: ['All'])[:messages][0]
  check(message[:attributes]['ApproximateReceiveCount'] == '2', message)
  sqs.delete_message(queue_url: url, receipt_handle: message[:receipt_handle])
  sqs.send_message_batch(queue_url: url, entries: (0..2).map { |n| { id: n.to_s, message_body: "b#{n}" } })
  found = []
  10.times do
    sqs.receive_message(queue_url: url, wait_time_seconds: 2, max_number_of_messages: 10)[:messages].each do |m|
      found << m[:body]
      sqs.delete_message(queue_url: url, receipt_handle: m[:receipt_handle])
    end
    break if found.size == 3
  end
  check(found.sort == %w[b0 b1 b2], found)
  sqs.delete_queue(queue_url: url)
  puts 'ok ruby 1'
end
