"""The lake's rules in layers, each usable without the next: joint move, episode, observation, reward; then the batch."""
