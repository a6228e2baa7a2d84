"""The builds of one command, each in a process of its own."""
