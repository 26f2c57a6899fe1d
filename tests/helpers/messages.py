"""Patterns of messages."""

import re


def mentions(*words):
    """Pattern of a message that contains all the words, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)
