"""Keep data that only looks like tests out of collection; the plugin itself is an entry point."""

collect_ignore_glob = ["tests/data/*"]
