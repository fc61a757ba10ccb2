"""What a run looks like: in a terminal, in TensorBoard, on a page."""
