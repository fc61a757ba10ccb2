"""The language model as a trainee: made from nothing or loaded, taught by GRPO, asked as an engineer.

tokenizer.py  a tokenizer for small models: words of lakes and JSON's signs are single tokens
small.py      a Qwen3 of about a million parameters, made from nothing
pretrain.py   supervision on certified plans: `envtuning pretrain`
rows.py       a stage's config as rows of prompts
options.py    what stands under `trainee.options` in a run's file
learner.py    TRL's GRPOTrainer, one for the whole run
trainee.py    the `Trainee` that the loop knows
policy.py     many conversations, one call of generation
collapse.py   the rule that sees a collapse before the numbers stop being finite
"""
