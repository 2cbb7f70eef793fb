"""From task files to tasks: parse, check, find, select; and `dataclaw build`."""
