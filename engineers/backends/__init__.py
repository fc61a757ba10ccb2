"""Chats behind the language-model engineers, one module per provider; each imports its SDK at the first question."""
