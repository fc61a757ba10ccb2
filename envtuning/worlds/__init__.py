"""The environments that the loop can train on."""
