"""The loop: stages of training, validation, reports, and an engineer between the stages."""
