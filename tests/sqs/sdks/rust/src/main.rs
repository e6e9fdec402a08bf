// The AWS SDK for Rust, pointed at a service by AWS_ENDPOINT_URL_SQS: cargo run

use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use aws_sdk_sqs::{primitives::Blob, Client};
use std::error::Error;

async fn receive(sqs: &Client, url: &str, count: i32) -> Result<Vec<Message>, Box<dyn Error>> {
    let answer = sqs.receive_message().queue_url(url).max_number_of_messages(count).wait_time_seconds(5)
        .message_attribute_names("All").message_system_attribute_names(MessageSystemAttributeName::All).send().await?;
    Ok(answer.messages.unwrap_or_default())
}

fn receives(message: &Message) -> &str {
    &message.attributes.as_ref().unwrap()[&MessageSystemAttributeName::ApproximateReceiveCount]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let settings = aws_config::from_env().http_client(http).load().await;
    let sqs = Client::new(&settings);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let name = format!("hello-rust-{:x}", now & 0xffff_ffff);
    let url = sqs.create_queue().queue_name(&name).attributes(QueueAttributeName::VisibilityTimeout, "30").send().await?.queue_url.unwrap();
    let raw = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new(vec![0u8, 1, 255])).build()?;
    let sent = sqs.send_message().queue_url(&url).message_body("hello").message_attributes("raw", raw.clone()).send().await?;

    let first = receive(&sqs, &url, 1).await?.remove(0);
    assert_eq!((first.body.as_deref(), first.message_id.as_deref()), (Some("hello"), sent.message_id.as_deref()));
    assert_eq!(first.message_attributes.as_ref().unwrap()["raw"], raw);
    assert_eq!(receives(&first), "1");
    sqs.change_message_visibility().queue_url(&url).receipt_handle(first.receipt_handle.unwrap()).visibility_timeout(0).send().await?;
    let second = receive(&sqs, &url, 1).await?.remove(0);
    assert_eq!(receives(&second), "2");
    sqs.delete_message().queue_url(&url).receipt_handle(second.receipt_handle.unwrap()).send().await?;

    let entries = (0..3).map(|n| SendMessageBatchRequestEntry::builder().id(n.to_string()).message_body(format!("b{n}")).build().unwrap()).collect();
    assert_eq!(sqs.send_message_batch().queue_url(&url).set_entries(Some(entries)).send().await?.successful.len(), 3);
    let mut found = vec![];
    for _ in 0..10 {
        let mut ends = vec![];
        for one in receive(&sqs, &url, 10).await? {
            found.push(one.body.unwrap());
            ends.push(DeleteMessageBatchRequestEntry::builder().id(ends.len().to_string()).receipt_handle(one.receipt_handle.unwrap()).build()?);
        }
        if !ends.is_empty() {
            assert!(sqs.delete_message_batch().queue_url(&url).set_entries(Some(ends)).send().await?.failed.is_empty());
        }
        if found.len() == 3 { break; }
    }
    found.sort();
    assert_eq!(found, ["b0", "b1", "b2"]);
    let error = sqs.get_queue_url().queue_name(format!("none-{name}")).send().await.unwrap_err().into_service_error();
    assert!(error.is_queue_does_not_exist(), "{error:?}");

    let fifo = sqs.create_queue().queue_name(format!("{name}.fifo")).attributes(QueueAttributeName::FifoQueue, "true").send().await?.queue_url.unwrap();
    for n in [0, 1, 1, 2] {
        sqs.send_message().queue_url(&fifo).message_body(format!("f{n}")).message_group_id("g").message_deduplication_id(format!("d{n}")).send().await?;
    }
    let mut order = vec![];
    while order.len() < 3 {
        let some = receive(&sqs, &fifo, 10).await?;
        assert!(!some.is_empty(), "only {order:?}");
        for one in some {
            order.push(one.body.unwrap());
            sqs.delete_message().queue_url(&fifo).receipt_handle(one.receipt_handle.unwrap()).send().await?;
        }
    }
    assert_eq!(order, ["f0", "f1", "f2"]);
    for queue in [url, fifo] {
        sqs.delete_queue().queue_url(queue).send().await?;
    }
    println!("ok rust");
    Ok(())
}
