"""A curriculum for training of your own: wrappers for Gymnasium and PettingZoo, a callback for RLlib."""
