"""Settings and strategies of property tests."""

from hypothesis import settings
from hypothesis import strategies as st

moderate_floats = st.floats(-50, 50)


def at_least(n_examples):
    """Settings of n_examples examples, or of as many as the profile asks for if these are more."""
    return settings(max_examples=max(n_examples, settings().max_examples))
