"""A curriculum for training of your own: wrappers for Gymnasium and PettingZoo, callbacks for RLlib, Stable-Baselines3 and TRL."""
