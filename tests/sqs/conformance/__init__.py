"""172 checks whether an endpoint behaves as Amazon SQS does, as far as clients can tell.

Each says what it rests on: "aws" (observed at the real service by the public tests of LocalStack), "doc" (Amazon's API
reference and developer guide), "sdk" (what clients need), "free" (no document decides; the best guess).
"""
