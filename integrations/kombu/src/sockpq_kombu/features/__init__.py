"""Features that Celery and Flower have only for brokers known by name. Each is added when its module is imported."""
