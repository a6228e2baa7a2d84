"""The command line: one file a command; each turns arguments into one call."""
