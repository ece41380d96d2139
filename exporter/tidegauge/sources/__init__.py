"""I/O at the edge: pages and logs come in, nothing is understood here."""
