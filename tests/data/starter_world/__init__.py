"""The invented world behind the starter database: no company, policy or number in it is real."""
