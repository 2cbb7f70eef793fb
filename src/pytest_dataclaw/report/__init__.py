"""From records to the summary, as text and JSON."""
