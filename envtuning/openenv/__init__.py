"""A world's text environment as an OpenEnv server.

``models`` and ``client`` are what a trainer needs, and are copied into an exported folder as they stand; ``environment`` is one
session, ``app`` the server, ``export`` the folder.
"""
