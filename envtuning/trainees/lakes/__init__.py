"""What the trainees of lakes share: options, sampling from the native batch, the loop of iterations, the policy that is validated.

Read in this order: ``options``, ``rollout``, ``sampler``, ``policy``, ``trainee``.
"""
