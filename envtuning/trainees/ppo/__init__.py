"""PPO in one process: PyTorch and the native batch, without Ray. The same algorithm as ``trainees.rllib``, for many short runs.

Read in this order: ``options``, ``network``, ``learner``, ``trainee``. Sampling's arrays are ``trainees.rllib.rollout``.
"""
