"""The verb that serves the page."""
