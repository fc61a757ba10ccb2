"""PPO in one process: PyTorch and the native batch, without Ray. The same algorithm as ``trainees.rllib``, for many short runs.

Read in this order: ``network``, ``learner``, ``trainee``. Options, sampling and the loop of iterations are ``trainees.lakes``.
"""
