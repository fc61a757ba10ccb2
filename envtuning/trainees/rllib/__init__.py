"""PPO on RLlib's new API stack, sampled from the native batch.

Read in this order: ``runner``, ``module``, ``ppo``, ``options``, ``trainee``. Options, network, sampling and the loop of
iterations are in ``trainees.lakes``.
"""
