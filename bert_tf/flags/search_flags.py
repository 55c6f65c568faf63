"""Flags of a hyperparameter search.

A script adopts them with `flags.adopt_module_key_flags(search_flags)`;
`setup.search_setup`, called from `main`, runs the search.
"""

from bert_tf import options
from bert_tf.flags import flag_sections

_SEARCH = flag_sections.Section("Search", only_with="search")

SEARCH = flag_sections.Section(
    "Search", only_with="do_train", harmless=False
).integer(
    "search",
    None,
    "Number of trials of a hyperparameter search by Optuna. Each trial is a "
    "run in output_dir/trial-000, trial-001 and so on, and output_dir/best has "
    "the best weights of all.",
    min=1,
    only_with="do_eval",
)
SEARCH_SPACE = _SEARCH.spaced(
    "search_space",
    "learning_rate=5e-5,4e-5,3e-5,2e-5 train_batch_size=16,32 "
    "num_train_epochs=2,3,4",
    "Values of each flag to choose from. Flags of training, of the optimizer "
    "and --max_seq_length can be listed. The default is appendix A.3 of the "
    "BERT paper.",
    kind="FLAG=A,B,...",
)
SEARCH_PRUNER = _SEARCH.choice(
    "search_pruner",
    None,
    options.SEARCH_PRUNERS,
    "median stops a trial after an epoch if its best score is below the median "
    "of earlier trials at that epoch, once five trials have run to the end. By "
    "default, all trials run to the end.",
)
