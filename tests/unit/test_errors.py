"""Errors say where, what, and what else there is."""

import pickle

import pytest

from omega.errors import (
    BadInput,
    InvariantBroken,
    NotAllowed,
    OmegaError,
    SchemaMismatch,
    SettingsError,
    StoreUnavailable,
    UnknownScheduler,
    did_you_mean,
)


@pytest.mark.parametrize(
    "error",
    [
        BadInput("is empty"),
        SettingsError(["lease_ms is too short"]),
        UnknownScheduler("bach", ["batch"]),
        NotAllowed("alice may not do this"),
        StoreUnavailable("no answer"),
        SchemaMismatch("two migrations behind"),
        InvariantBroken("machine 3 is oversold"),
    ],
)
def test_every_error_is_an_omega_error(error: Exception) -> None:
    assert isinstance(error, OmegaError)


def test_bad_input_names_file_line_and_field_in_that_order() -> None:
    error = BadInput("must be positive", file="jobs.yaml", line=3, field="cpu_milli")

    assert "jobs.yaml, line 3, field cpu_milli: must be positive" == str(error)
    assert ("jobs.yaml", 3, "cpu_milli") == (error.file, error.line, error.field)
    assert "must be positive" == error.sentence


def test_bad_input_leaves_out_what_it_does_not_know() -> None:
    assert "field cpu_milli: must be positive" == str(
        BadInput("must be positive", field="cpu_milli")
    )
    assert "the list of jobs is empty" == str(BadInput("the list of jobs is empty"))


def test_line_zero_is_a_line() -> None:
    assert "a.csv, line 0: is cut off" == str(BadInput("is cut off", file="a.csv", line=0))


def test_a_settings_error_tells_all_problems() -> None:
    error = SettingsError(["one is low", "two is high"])

    assert "one is low; two is high" == str(error)
    assert ("one is low", "two is high") == error.problems


def test_a_settings_error_without_a_problem_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        SettingsError([])


def test_an_unknown_scheduler_lists_those_there_are() -> None:
    error = UnknownScheduler("bacth", ["service", "batch"])

    assert (
        "no scheduler is registered as 'bacth'; did you mean 'batch'? (registered: batch, service)"
        == str(error)
    )
    assert "(registered: none at all)" in str(UnknownScheduler("batch", []))


@pytest.mark.parametrize(
    "error",
    [
        BadInput("no number", file="jobs.csv", line=3, field="tasks"),
        SettingsError(["a lease is too short", "a gap is too long"]),
        UnknownScheduler("bach", ["batch", "service"]),
        NotAllowed("permission denied"),
        StoreUnavailable("nobody answers"),
        SchemaMismatch("it is at 12"),
        InvariantBroken("machine 3 is oversold", story=["granted 2"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_whole_from_another_process(error: OmegaError) -> None:
    came = pickle.loads(pickle.dumps(error))

    assert type(error) is type(came)
    assert str(error) == str(came)
    assert vars(error) == vars(came)


def test_a_broken_invariant_carries_its_story() -> None:
    error = InvariantBroken("machine 3 is oversold", story=["granted 2", "granted 1"])

    assert "machine 3 is oversold\n  granted 2\n  granted 1" == str(error)
    assert ("granted 2", "granted 1") == error.story


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert not did_you_mean("zebra", ["batch", "service"])


def test_a_shared_prefix_makes_nothing_near() -> None:
    known = ["OMEGA_LEASE_MS", "OMEGA_DATA_DIR"]

    assert not did_you_mean("OMEGA_ZEBRA", known, prefix="OMEGA_")
    assert "; did you mean 'OMEGA_LEASE_MS'?" == did_you_mean(
        "OMEGA_LEASEMS", known, prefix="OMEGA_"
    )
