"""The language model as a trainee: it is made from random weights or loaded, trained by GRPO, and may be the engineer too.

To see how a model is made, read ``tokenizer``, ``small``, ``supervised`` and ``pretrain`` (or ``tool_lessons``); ``packaged`` and
``gguf`` bring one from elsewhere. To see how it is trained, read ``options``, ``tasks``, ``rollouts``, ``outcomes``, ``learner`` and
``trainee``, then ``workers`` for several processes. ``lm`` is a trainee by supervision.
"""
