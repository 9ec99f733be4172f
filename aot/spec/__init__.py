"""Input specs, tensor traits, bounds, settings, errors and source locations."""
