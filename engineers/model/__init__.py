"""The engineer that asks a language model: prompt, constrained reply, meter, transcript."""
