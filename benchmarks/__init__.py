"""What was measured, and the commands that measure it: ``python -m benchmarks``."""
