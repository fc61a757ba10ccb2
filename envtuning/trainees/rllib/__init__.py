"""PPO on RLlib's new API stack, sampled from the native batch.

Read in this order: ``rollout`` (experience as arrays), ``runner``, ``network``, ``ppo``, ``options``, ``trainee``, ``policy``.
"""
