"""PPO on RLlib's new API stack, sampled from the native batch.

Read in this order: ``runner``, ``network``, ``ppo``, ``options``, ``trainee``. Sampling and the loop of iterations are
``trainees.lakes``.
"""
