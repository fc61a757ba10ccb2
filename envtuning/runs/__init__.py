"""A run on disk: its spec, its plan, its folder and its seeds."""
