"""Features that Celery and Flower have only for brokers known by name: each is added when its module is imported."""
