"""Random histories on Postgres, compared call by call with a model in plain words."""

import pytest

from omega.model.claims import ConflictRule
from omega.store.protocols import Store
from tests.fixtures.databases import Emptying
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.histories import histories
from tests.fixtures.servers import share_of
from tests.fixtures.sessions import OpenStore


@pytest.mark.parametrize("rule", ConflictRule)
def test_random_histories(
    database_url: str,
    emptying: Emptying,
    open_store: OpenStore,
    dose: Dose,
    tally: Tallier,
    rule: ConflictRule,
) -> None:
    def new_store() -> Store:
        emptying.empty(database_url)
        return open_store(database_url)

    with tally(f"{rule.value}, Postgres", of="state-machine steps") as row:
        histories(
            new_store, rule, row, steps=dose(short=40, long=share_of(20_000)), each=dose(2, 8)
        )
