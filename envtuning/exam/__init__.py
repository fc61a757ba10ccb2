"""The exam: any engineer scored by real trainings of small transformers."""
