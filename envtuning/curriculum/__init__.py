"""A curriculum for your own training: wrappers for Gymnasium and PettingZoo, callbacks for RLlib, Stable-Baselines3 and TRL."""
