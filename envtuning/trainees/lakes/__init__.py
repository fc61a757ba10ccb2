"""PPO on lakes without the gradient steps: options, network, sampling from the native batch, the loop of iterations, the policy.

Read in this order: ``options``, ``network``, ``rollout``, ``sampler``, ``policy``, ``trainee``.
"""
