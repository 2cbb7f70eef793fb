"""Helpers for tests, of this project and of its users: `model_server` plays a model by `scenario`."""
