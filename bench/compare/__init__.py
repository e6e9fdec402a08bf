"""sockpqd beside RabbitMQ and NATS: the same workloads of one load generator, the systems in turn, in one sitting."""
