"""A run on the disk: what it was asked to do, its folder, its seeds, and how its files are written and read."""
