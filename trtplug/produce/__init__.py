"""One target's files, from what its build gave."""
