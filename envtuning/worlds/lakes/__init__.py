"""Lakes: MAPF-FrozenLake as the loop sees it."""
