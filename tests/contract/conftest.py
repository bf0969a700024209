"""Assertions inside the shipped contracts are to explain themselves as those in tests do."""

import pytest

pytest.register_assert_rewrite("omega.testing")
