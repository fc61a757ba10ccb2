"""The environment's public interfaces, each a thin adapter over ``world.batch.LakeBatch``."""
