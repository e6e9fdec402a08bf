"""A program for each of eight SDKs, which finds the service by AWS_ENDPOINT_URL_SQS."""
