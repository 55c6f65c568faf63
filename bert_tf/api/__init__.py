"""What `import bert_tf` offers to programs: models, answers, a tokenizer."""
