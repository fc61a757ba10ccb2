"""Figures of the tool-use world."""
