"""One build command: planned, carried out, and its files made."""
