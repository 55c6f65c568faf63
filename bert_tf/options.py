"""What flags may say: names that stand here so that no TensorFlow is needed.

The modules that act on them hold a table with a row for each; flags are read
before those modules, which take seconds to import.
"""

# What to compute on, and the number format of activations.
STRATEGIES = ("default", "mirrored", "multi_worker_mirrored", "tpu")
DTYPES = ("float32", "bfloat16", "float16")

# What of a text is masked as one.
MASKING_POLICIES = ("token", "whole_word", "span", "ngram")

# How weights are updated.
OPTIMIZERS = ("adamw", "adamw_bias_corrected", "lamb", "lamb_uncorrected")
SCHEDULES = (
    "linear",
    "linear_times_warmup",
    "polynomial",
    "cosine",
    "constant",
)
# What of the learning rate the last layer has with layer decay.
LAYER_DECAY_FORMS = ("paper", "code")
CLIPPING = ("global", "per_replica")
# Of moments that are kept: nearer to 1 float32 has too few numbers.
LARGEST_BETA = 0.999999

# What a student learns from a teacher, by who did so first. That of words is
# for pre-training, those of layers train no head.
DISTILLATIONS = ("logits", "distilbert", "tinybert_layers", "minilm")
DISTILLATION_OF_WORDS = DISTILLATIONS[1]
DISTILLATIONS_OF_LAYERS = DISTILLATIONS[2:]

# Checkpoints of this project and of others.
CHECKPOINT_FORMATS = ("tf1", "hf", "keras_hub")
USE_CHECKPOINT = ("best", "last")

# Heads that answer raw text, and those that a checkpoint may have besides.
# Lists: `serving.heads.register` adds those from elsewhere.
SERVED_HEADS = [
    "encoder",
    "masked_lm",
    "next_sentence",
    "classification",
    "tagging",
    "span",
    "multiple_choice",
    "next_piece",
]
HEADS = [
    *("encoder", "pretraining", "replaced_tokens", "both_directions"),
    *SERVED_HEADS[1:],
]

# What exports are written for, and how their weights are kept.
EXPORT_FORMATS = ("saved_model", "litert", "onnx")
EXPORT_WEIGHTS = ("float32", "int8")

# Experiment trackers that a run can report to.
TRACKERS = ("wandb", "mlflow")

# Pruners of a hyperparameter search, which stop unpromising trials.
SEARCH_PRUNERS = ("median",)

# What is read of texts that are too long.
LONG_DOCUMENTS = ("head", "tail", "head_tail", "windows")

# Which layers make a vector, what has one, and where vectors go.
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

# Apache Beam's.
RUNNERS = (
    "DirectRunner",
    "DaskRunner",
    "FlinkRunner",
    "SparkRunner",
    "DataflowRunner",
)
