"""One folder per task: its data, records, results and SavedModel."""
