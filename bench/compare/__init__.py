"""sockpqd compared with RabbitMQ and NATS: the same workloads of one load generator, in turn, in one sitting."""
