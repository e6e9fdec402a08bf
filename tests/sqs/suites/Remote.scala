// Stands in for the two traits of the same names in ElasticMQ's tests, which start a server in the test's process: here the
// server is another program's (system property `endpoint`), and is emptied before each test.
package org.elasticmq.rest.sqs.integration.common

import com.amazonaws.auth.{AWSStaticCredentialsProvider, BasicAWSCredentials}
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration
import com.amazonaws.services.sqs.{AmazonSQS, AmazonSQSClientBuilder}
import org.elasticmq.rest.sqs.integration.client.{AwsSdkV1SqsClient, AwsSdkV2SqsClient, SqsClient}
import org.scalatest.BeforeAndAfter
import org.scalatest.funsuite.AnyFunSuite
import software.amazon.awssdk.auth.credentials.{AwsBasicCredentials, StaticCredentialsProvider}
import software.amazon.awssdk.regions.Region
import software.amazon.awssdk.services.sqs.{SqsClient => AwsSqsClient}

import java.net.URI
import scala.util.Try

object Remote {
  val endpoint: String = System.getProperty("endpoint")
  val access: String = System.getProperty("access", "test")
  val secret: String = System.getProperty("secret", "test-secret-test-secret")
}

trait SQSRestServerWithSdkV2Client extends AnyFunSuite with BeforeAndAfter {
  var testClient: SqsClient = _
  var clientV2: AwsSqsClient = _

  def awsAccountId: String = System.getProperty("account", "123456789012")
  def awsRegion: String = System.getProperty("region", "us-east-1")

  before {
    clientV2 = AwsSqsClient.builder()
      .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create(Remote.access, Remote.secret)))
      .region(Region.US_EAST_1).endpointOverride(new URI(Remote.endpoint)).build()
    testClient = new AwsSdkV2SqsClient(clientV2)
    clientV2.listQueues().queueUrls().forEach(url => Try(clientV2.deleteQueue(r => { r.queueUrl(url); () })))
  }

  after { if (clientV2 != null) clientV2.close() }
}

trait SQSRestServerWithSdkV1Client extends AnyFunSuite with BeforeAndAfter {
  var testClient: SqsClient = _
  var client: AmazonSQS = _

  def awsAccountId: String = System.getProperty("account", "123456789012")
  def awsRegion: String = System.getProperty("region", "us-east-1")

  before {
    client = AmazonSQSClientBuilder.standard()
      .withCredentials(new AWSStaticCredentialsProvider(new BasicAWSCredentials(Remote.access, Remote.secret)))
      .withEndpointConfiguration(new EndpointConfiguration(Remote.endpoint, "us-east-1")).build()
    testClient = new AwsSdkV1SqsClient(client)
    client.listQueues().getQueueUrls.forEach(url => Try(client.deleteQueue(url)))
  }

  after { if (client != null) client.shutdown() }
}

// The tests of MultiSdkTestSuite.scala, but those of the health check and of tracing, which need Pekko's test kit.
abstract class RemoteSuite
    extends IntegrationTestsBase
    with org.elasticmq.rest.sqs.integration.multisdk.QueueOperationsTests
    with org.elasticmq.rest.sqs.integration.multisdk.QueueAttributesTests
    with org.elasticmq.rest.sqs.integration.multisdk.MessageOperationsTests
    with org.elasticmq.rest.sqs.integration.multisdk.FifoQueueTests
    with org.elasticmq.rest.sqs.integration.multisdk.DeadLetterQueueTests
    with org.elasticmq.rest.sqs.integration.multisdk.MessageMoveTaskTests
    with org.elasticmq.rest.sqs.integration.multisdk.CreateQueueRaceConditionTests
    with org.elasticmq.rest.sqs.integration.multisdk.FifoDeduplicationTests
    with org.elasticmq.rest.sqs.integration.multisdk.MessageAttributesTests

class Sdk1 extends RemoteSuite with SQSRestServerWithSdkV1Client
class Sdk2 extends RemoteSuite with SQSRestServerWithSdkV2Client
