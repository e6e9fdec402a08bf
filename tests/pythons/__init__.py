"""The product under other versions of Python: `make test-pythons`."""
