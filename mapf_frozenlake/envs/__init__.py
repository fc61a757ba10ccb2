"""The environment's public forms, each a thin adapter over ``world.batch.LakeBatch``."""
