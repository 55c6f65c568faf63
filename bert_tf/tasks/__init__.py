"""A folder a task: its data, records, results and SavedModel."""
