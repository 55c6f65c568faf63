"""What scripts do with their flags: models, plans and data made of them."""
