"""The paper's core as pure functions and structures of arrays: judge, view."""
