"""`omega db`: the database of a cell, made, migrated, examined and pruned."""
