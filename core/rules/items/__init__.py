"""Rules for whole items: how they are cancelled. Uses the end of a job; used by the other rules."""
