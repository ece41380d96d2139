"""Text to values: pure, no I/O, no clock."""
