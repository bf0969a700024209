"""`omega sim`: simulations, sweeps of simulations, and laws fitted to traces."""
