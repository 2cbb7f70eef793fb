"""Results on disk: written atomically, read strictly."""
