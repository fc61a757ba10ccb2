"""Many runs: engineers compared, search spaces tuned, and the intervals that figures are given with."""
