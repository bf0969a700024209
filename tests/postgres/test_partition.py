"""A machine's part is the same in Postgres as in numpy."""

from contextlib import closing

import numpy as np

from omega.cell.partition import PARTS_MAX, part_of
from omega.store.postgres.connection import Link


def test_parts_agree_with_numpy(database_url: str) -> None:
    ids = np.concatenate([np.arange(1, 2_000), 2**31 - 1 - np.arange(3), [10**9]]).astype(np.int64)
    with closing(Link(database_url, application_name="t", statement_timeout_ms=30_000)) as link:
        for of in (1, 2, 3, 7, 32, PARTS_MAX):
            rows = link.call(
                "SELECT omega.part_of(id, %s) FROM unnest(%s::integer[]) AS id",
                (of, ids.tolist()),
            )

            assert part_of(ids, of).tolist() == [part for (part,) in rows]
