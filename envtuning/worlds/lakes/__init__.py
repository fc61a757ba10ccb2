"""Lakes: MAPF-FrozenLake for the loop. Read ``world`` first, then ``play`` and ``episodes``."""
