"""What encoders compute with: ops, and what is done about padding."""
