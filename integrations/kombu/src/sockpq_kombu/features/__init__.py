"""What Celery and Flower do for brokers that they know by name, done for this one: each when its module is imported."""
