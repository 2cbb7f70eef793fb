"""pytest-dataclaw: evaluate data-analysis agents, each benchmark task a test item."""

__version__ = "0.1.0"
