"""The verb `omega up`."""
