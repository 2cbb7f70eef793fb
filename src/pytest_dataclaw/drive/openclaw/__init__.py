"""The `openclaw` agent: the real OpenClaw in the sandbox, over its gateway's WebSocket."""
