"""How a SavedModel is made of a model: what all heads share."""
