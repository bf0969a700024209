"""What all tests share: fixtures, as plugins by theme, and how hard hypothesis looks."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, Phase, settings

# As many tests run at once as there are processors: threads of numpy's would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Assertions inside the shipped contracts are to explain themselves as those in tests do. First of
# all, for some of the plugins import what it is about.
pytest.register_assert_rewrite("omega.testing")

pytest_plugins = [
    "tests.fixtures.command_line",
    "tests.fixtures.databases",
    "tests.fixtures.doses",
    "tests.fixtures.fragile",
    "tests.fixtures.pairs",
    "tests.fixtures.poolers",
    "tests.fixtures.job_lists",
    "tests.fixtures.sweeps",
    "tests.fixtures.victims",
    "tests.fixtures.logins",
    "tests.fixtures.sessions",
    "tests.fixtures.published_traces",
    "tests.fixtures.slow",
]

# No deadlines: a test that needs a time limit to pass is wrong. Database fixtures are made once a
# test, not once an example, and the tests that use them know it.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile("prove", settings.get_profile("house"), max_examples=250)
# For `make mutants`: whoever looks for a failure does not ask for a small one, and finds it again.
settings.register_profile(
    "mutants",
    settings.get_profile("house"),
    max_examples=100,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("house")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the tests themselves out of garbage collection: each would look at all of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
