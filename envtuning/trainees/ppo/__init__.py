"""PPO in one process: PyTorch and the native batch, without Ray. The same algorithm as ``trainees.rllib``, for many short runs.

Read in this order: ``learner``, ``trainee``. Options, network, sampling and the loop of iterations are ``trainees.lakes``.
"""
