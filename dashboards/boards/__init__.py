"""The boards, one module each: a function per panel, in the order of the board."""
