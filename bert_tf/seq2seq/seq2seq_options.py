"""The options of generated texts, which are also flags."""

import dataclasses

from bert_tf import options


@dataclasses.dataclass(frozen=True)
class Generation(options.Options):
    """How texts are generated."""

    max_target_length: int = options.option(
        64,
        "Max tokens of a target; longer ones are truncated. Also the max "
        "length of generated texts.",
        min=3,
    )
    beam_size: int = options.option(
        4,
        "Hypotheses kept at each token; 1 takes the most likely token.",
        min=1,
        # More hypotheses exhaust the memory with a vocabulary of usual size.
        max=1000,
    )
    length_penalty: float = options.option(
        0.6,
        "Exponent of GNMT's length penalty: 0 for none, larger for longer "
        "texts.",
        min=0,
    )
