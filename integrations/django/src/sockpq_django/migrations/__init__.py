"""The tables of the outbox and the inbox, in the databases that use them."""
