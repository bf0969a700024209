"""`omega cell`: the machines of a cell, loaded, shown and changed."""
