"""Keys of config files that do not affect what a model computes."""

# Keys of the multilingual and Chinese releases. They describe the pooler that
# every BERT has; the original never reads them.
POOLER = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)
# Keys that transformers writes, or has written, into the config.json of a BERT,
# and that do not affect its outputs.
_KEYS = """
    _attn_implementation _attn_implementation_autoset _commit_hash
    _name_or_path architectures attn_implementation bos_token_id
    chunk_size_feed_forward classifier_dropout decoder_start_token_id dtype
    eos_token_id eos_token_ids finetuning_task gradient_checkpointing id2label
    label2id mask_token_id model_type name_or_path num_labels output_attentions
    output_hidden_states output_past output_scores pad_token_id prefix
    return_dict return_dict_in_generate sep_token_id task_specific_params
    tf_legacy_loss tie_encoder_decoder tokenizer_class torch_dtype torchscript
    transformers_version use_bfloat16 use_cache xla_device
"""
# Settings of text generation, which an encoder does not do.
_GENERATION = """
    assistant_confidence_threshold assistant_lookbehind bad_words_ids
    begin_suppress_tokens diversity_penalty do_sample early_stopping
    encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff
    eta_cutoff exponential_decay_length_penalty forced_bos_token_id
    forced_eos_token_id length_penalty max_length min_length
    no_repeat_ngram_size num_assistant_tokens num_assistant_tokens_schedule
    num_beam_groups num_beams num_return_sequences remove_invalid_values
    repetition_penalty suppress_tokens target_lookbehind temperature top_k
    top_p typical_p
"""
GENERATION = frozenset(_GENERATION.split())
HARMLESS = GENERATION.union(_KEYS.split())
