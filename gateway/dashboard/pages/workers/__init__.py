"""The page of the workers: `page` has the pools, and `cron` the periodic tasks."""
