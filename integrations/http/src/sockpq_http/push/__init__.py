"""Push: takes jobs from queues and POSTs them to HTTP receivers, signed. docs/PUSH.md describes it."""
