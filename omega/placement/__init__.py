"""Where tasks go: feasibility, choice of machines and device slots, and why there is no room."""
