"""Lakes: MAPF-FrozenLake as the loop sees it. Read ``world`` first, then ``play`` and ``episodes``."""
