"""Sandboxes: where the agent's commands run."""
