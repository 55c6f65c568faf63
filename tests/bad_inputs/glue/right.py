"""What looks wrong to run_glue.py, and rightly works."""

from tests.bad_inputs import matrix

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Found nothing that would stop these runs."),
    "another backend of Keras": matrix.Case(
        {}, "", environment={"KERAS_BACKEND": "torch"}
    ),
    "no backend of matplotlib": matrix.Case(
        {}, "", environment={"MPLBACKEND": "none"}
    ),
    "a C locale": matrix.Case(
        {"output_dir": "{out}/é ü 博", "data_dir": "{data}/dé ta"},
        "é ü 博",
        environment={"LC_ALL": "C"},
    ),
    "the name of a TPU, without one": matrix.Case(
        {"tpu_name": "x"}, "Not used, as they go with --use_tpu or "
    ),
    "a folder of a task that is not trained": matrix.Case(
        {"task_dirs": "MNLI:x"}, "Not used of --task_dirs, as --tasks lacks"
    ),
}
