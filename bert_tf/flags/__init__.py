"""Defines, parses, documents and records the flags of scripts."""
