"""Shows runs in a terminal, in TensorBoard and on a page."""
