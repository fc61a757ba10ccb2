"""How actionable are a tool's messages? Measures, without a model, how well they locate a fault in a known plan.

A scripted reader executes a task's ground truth with one fault of a known type in it. It may look up any single thing again (an
argument, a tool's name, a call that it left out), but only the messages tell it where to look. So the faults that it recovers from
are those that the messages locate. This does not measure how well a language model reads.
"""
