"""Many runs: comparisons, preregistered studies, searches with Ray Tune, and their intervals."""
