"""Flags of scripts that run in the process of the tests."""

import contextlib
import sys
from collections.abc import Iterator

from tools import isolation

from absl import flags, logging
from absl.flags import _helpers as flags_helpers

# Modules that define flags, or keep references to flags.
_OF_FLAGS = ("bert_tf.flags.", "bert_tf.setup.")
# These define flags for others: absl knows such modules by their identity.
_DEFINERS = ("bert_tf.flags.flag_sections", "bert_tf.flags.flag_values")


@contextlib.contextmanager
def own_flags() -> Iterator[None]:
    """Lets a script define its flags as if none were defined.

    Modules that define flags are imported again in this context.
    """
    values = flags.FLAGS
    # Some attributes are lists, from which absl removes flags.
    state = {
        name: {k: x[:] if isinstance(x, list) else x for k, x in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in vars(values).items()
    }
    each = [(flag, dict(vars(flag))) for flag in state["__flags"].values()]
    by_module = values.flags_by_module_dict()
    ours = {name for name in by_module if not name.startswith("absl.")}
    names = [flag.name for name in ours for flag in by_module[name]]
    values.remove_flag_values(names)
    logging.set_verbosity(0)
    modules = {
        name: module
        for name, module in sys.modules.items()
        if (name in ours or name.startswith(_OF_FLAGS))
        and name not in _DEFINERS
    }
    isolation.forget(modules)
    try:
        yield
    finally:
        new = [
            name
            for name in sys.modules
            if name.startswith(_OF_FLAGS) and name not in _DEFINERS
        ]
        # These are addresses, which other modules may have later.
        flags_helpers.disclaim_module_ids.difference_update(
            id(sys.modules[name]) for name in new
        )
        isolation.forget(new)
        for name, module in modules.items():
            sys.modules[name] = module
            package, _, leaf = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], leaf, module)
        vars(values).update(state)
        for flag, attributes in each:
            flag.__dict__.update(attributes)
