"""Allowed values of flags; needs no TensorFlow.

Flags are parsed before the modules that implement these options are imported,
which takes seconds. Those modules have tables with the same names.
"""

# Devices to compute on, and the dtypes of activations.
STRATEGIES = ("default", "mirrored", "multi_worker_mirrored", "tpu")
DTYPES = ("float32", "bfloat16", "float16")
# What runs the training step.
RUNTIMES = ("tensorflow", "pjrt")

# Units of text that are masked as a whole.
MASKING_POLICIES = ("token", "whole_word", "span", "ngram")

# Update rules of weights.
OPTIMIZERS = ("adamw", "adamw_bias_corrected", "lamb", "lamb_uncorrected")
SCHEDULES = (
    "linear",
    "linear_times_warmup",
    "polynomial",
    "cosine",
    "constant",
    "inverse_sqrt",
)
# How layer decay scales the learning rate of the last layer.
LAYER_DECAY_FORMS = ("paper", "code")
CLIPPING = ("global", "per_replica")
# Max decay rate of moments; float32 cannot represent values closer to 1 well.
LARGEST_BETA = 0.999999

# Distillation methods, by who introduced them. The one for words is for
# pre-training; those for layers train no head.
DISTILLATIONS = ("logits", "distilbert", "tinybert_layers", "minilm")
DISTILLATION_OF_WORDS = DISTILLATIONS[1]
DISTILLATIONS_OF_LAYERS = DISTILLATIONS[2:]

# Checkpoint formats of this project and of other libraries.
CHECKPOINT_FORMATS = ("tf1", "hf", "keras_hub")
USE_CHECKPOINT = ("best", "last")

# Heads that can be applied to raw text, and other heads that a checkpoint may
# have. Lists, as `serving.served_heads.register` adds custom heads.
SERVED_HEADS = [
    "encoder",
    "masked_lm",
    "next_sentence",
    "classification",
    "tagging",
    "span",
    "joint_span",
    "multiple_choice",
    "next_piece",
    "replaced_tokens",
    "seq2seq",
]
HEADS = [
    *("encoder", "pretraining", "both_directions"),
    *SERVED_HEADS[1:],
]

# Heads of run_squad.py, by --answer_head.
ANSWER_HEADS = {"independent": "span", "joint": "joint_span"}

# Export formats, and storage formats of their weights.
EXPORT_FORMATS = ("saved_model", "litert", "onnx")
EXPORT_WEIGHTS = ("float32", "int8")

# Of run_seq2seq.py: formats of pairs of texts, weights that both halves of a
# model share, and scores of generated texts.
TEXT_PAIR_FORMATS = ("tsv", "csv", "jsonl", "text")
SHARED_WEIGHTS = ("none", "embeddings", "all")
TEXT_METRICS = ("bleu", "chrf", "rouge1", "rouge2", "rougeL", "loss")
BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")

# Experiment trackers that a run can report to.
TRACKERS = ("wandb", "mlflow")

# Pruners of a hyperparameter search, which stop unpromising trials.
SEARCH_PRUNERS = ("median",)

# Which part of a text that is too long is read.
LONG_DOCUMENTS = ("head", "tail", "head_tail", "windows")

# Layers that make up a vector, units that have vectors, and output formats.
FEATURES = (
    "layers",
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "sum_all",
    "mean_all",
)
UNITS = ("token", "word", "cls", "mean")
FEATURE_FORMATS = ("jsonl", "npy", "parquet", "tfrecord")

# Runners of Apache Beam.
RUNNERS = (
    "DirectRunner",
    "DaskRunner",
    "FlinkRunner",
    "SparkRunner",
    "DataflowRunner",
)
