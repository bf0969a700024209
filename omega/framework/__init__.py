"""The scheduling loop: what a scheduler is, one attempt as a generator of effects, its runner."""
