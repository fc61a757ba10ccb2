"""PPO in one process, with PyTorch and the native batch, without Ray: the algorithm of ``trainees.rllib``, for many short runs.

Read in this order: ``learner``, ``trainee``. Options, network, sampling and the loop of iterations are in ``trainees.lakes``.
"""
