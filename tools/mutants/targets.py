"""The mutated modules, and the tests that should kill their mutants.

Exhaustive tests do not run. With --tree, that tree's own copy of this file is
used if it has one.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Target:
    """A module, its tests and its number of mutants.

    Attributes:
        module: Path in bert_tf/, without `.py`.
        tests: Paths or globs of test files in tests/.
        mutants: The number that `--choose` spreads evenly over the module.
    """

    module: str
    tests: tuple[str, ...]
    mutants: int


TARGETS = (
    # ---- Losses, optimizer, training -----------------------------------------
    Target("losses", ("test_losses.py",), 8),
    Target(
        "optimization",
        (
            "test_optimization.py",
            "test_loss_scaling.py",
        ),
        9,
    ),
    Target("weight_pruning", ("test_weight_pruning.py",), 4),
    Target("replaced_tokens", ("test_replaced_tokens.py",), 4),
    Target(
        "training/loop",
        ("training/test_loop.py", "training/test_loop_dropout.py"),
        4,
    ),
    Target(
        "training/replica_step",
        ("training/test_loop.py", "training/test_loop_dropout.py"),
        4,
    ),
    Target(
        "training/schedules",
        ("training/test_recipes.py", "test_optimization.py"),
        5,
    ),
    Target(
        "training/training_state",
        ("training/test_state.py", "checkpoints/test_resuming.py"),
        10,
    ),
    Target("training/scoring", ("training/test_scoring.py",), 5),
    Target("training/evaluation", ("training/test_evaluation.py",), 4),
    Target(
        "training/distillation_losses",
        ("training/test_distillation_losses.py",),
        6,
    ),
    Target("training/importance", ("training/test_importance.py",), 3),
    # ---- The model -----------------------------------------------------------
    Target("encoders/ops", ("encoders/test_ops.py",), 9),
    Target("encoders/layers", ("encoders/test_ops.py", "test_modeling.py"), 5),
    Target("encoders/padding", ("encoders/test_padding.py",), 5),
    Target("heads", ("test_heads.py",), 7),
    Target(
        "configuration",
        ("test_configuration.py", "test_configuration_of_transformers.py"),
        6,
    ),
    # ---- Records -------------------------------------------------------------
    Target(
        "records/masking",
        ("records/test_masking.py", "records/test_ngram_masks.py"),
        11,
    ),
    Target("records/dynamic_masks", ("records/test_dynamic_masks.py",), 4),
    Target("records/pipeline", ("records/test_pipeline.py",), 6),
    Target("records/manifests", ("records/test_manifests.py",), 6),
    Target(
        "records/tfrecord",
        ("records/test_tfrecord.py", "records/test_reading.py"),
        5,
    ),
    Target("records/wire_format", ("records/test_wire_format.py",), 6),
    Target("records/shuffled_writer", ("records/test_shuffled_writer.py",), 5),
    # ---- Texts to records ----------------------------------------------------
    Target(
        "pretraining_data/segments",
        (
            "pretraining_data/test_segments.py",
            "pretraining_data/test_sentence_order.py",
        ),
        8,
    ),
    Target(
        "pretraining_data/stages",
        (
            "pretraining_data/test_stages.py",
            "pretraining_data/test_work_folder.py",
        ),
        6,
    ),
    Target(
        "pretraining_data/pretraining_sequences",
        ("pretraining_data/test_sequences.py",),
        6,
    ),
    Target(
        "pretraining_data/pretraining_rows",
        ("pretraining_data/test_rows.py",),
        10,
    ),
    # ---- Texts to ids --------------------------------------------------------
    Target("tokenization", ("test_tokenization.py",), 8),
    Target(
        "vocabularies/word_pieces",
        ("vocabularies/test_word_pieces.py", "tasks/test_readers.py"),
        5,
    ),
    Target("vocabularies/byte_pairs", ("vocabularies/test_byte_pairs.py",), 7),
    Target("text/text_graph", ("text/test_graph.py",), 6),
    Target("text/graph_rows", ("text/test_graph.py",), 3),
    Target("text/graph_offsets", ("text/test_tokenizers.py",), 3),
    Target("text/graph_byte_pairs", ("text/test_tokenizers.py",), 5),
    Target("text/graph_sentence_pieces", ("text/test_tokenizers.py",), 5),
    Target("text/long_documents", ("text/test_long_documents.py",), 4),
    # ---- Checkpoints ---------------------------------------------------------
    Target(
        "checkpoints/tf1_files",
        (
            "checkpoints/test_tf1_files.py",
            "checkpoints/test_restore_weights.py",
        ),
        6,
    ),
    Target(
        "checkpoints/restoring", ("checkpoints/test_restore_weights.py",), 5
    ),
    Target(
        "checkpoints/huggingface",
        (
            "checkpoints/test_huggingface.py",
            "checkpoints/test_huggingface_writing.py",
            "checkpoints/test_restore_weights.py",
        ),
        5,
    ),
    Target(
        "checkpoints/best",
        ("checkpoints/test_best.py", "checkpoints/test_restore_weights.py"),
        6,
    ),
    # ---- Tasks ---------------------------------------------------------------
    Target("tasks/squad/squad_answers", ("tasks/squad/test_answers.py",), 9),
    Target(
        "tasks/squad/squad_windows",
        ("tasks/squad/test_windows.py", "tasks/test_readers.py"),
        8,
    ),
    Target("tasks/squad/squad_metrics", ("tasks/squad/test_metrics.py",), 5),
    Target("tasks/tagging/conll", ("tasks/tagging/test_conll.py",), 7),
    Target(
        "tasks/tagging/schemes",
        ("tasks/tagging/test_scores.py", "tasks/tagging/test_conll.py"),
        6,
    ),
    Target(
        "tasks/classification/classification_metrics",
        (
            "tasks/classification/test_metrics.py",
            "tasks/classification/test_glue.py",
        ),
        5,
    ),
    Target(
        "tasks/tables",
        (
            "tasks/test_tables.py",
            "tasks/test_readers.py",
            "tasks/classification/test_own_files.py",
        ),
        6,
    ),
    Target("tasks/glue/glue_scores", ("tasks/glue/test_scores.py",), 5),
    # ---- Flags, files, serving -----------------------------------------------
    Target(
        "flags/flag_values",
        ("flags/test_sections.py", "flags/test_flagfiles.py"),
        5,
    ),
    Target("flags/flag_sections", ("flags/test_sections.py",), 8),
    Target("flags/flagfiles", ("flags/test_flagfiles.py",), 4),
    Target("flags/output_paths", ("flags/test_output_paths.py",), 4),
    Target("files", ("test_files.py",), 6),
    Target("storage/run_lock", ("storage/test_run_lock*.py",), 5),
    Target("serving/serving_lines", ("serving/test_lines.py",), 6),
    Target("serving/batches", ("serving/test_batches.py",), 4),
    Target("server/json_requests", ("server/test_json.py",), 7),
    Target("server/batching", ("server/test_batching.py",), 6),
)
