"""The benchmarks and their results: ``python -m benchmarks`` lists them."""
