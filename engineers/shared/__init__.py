"""What ``engineers`` and ``envtuning`` share and no user imports: a command's signals and output, files from outside, users' code."""
