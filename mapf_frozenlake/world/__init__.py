"""The lake's rules in layers: joint move, episode, observation, reward, and the batch. Each works without the next."""
