"""The runtime that --runtime asks for, checked against the other flags."""

from bert_tf.errors import InputError
from bert_tf.flags import distillation_flags, run_flags
from bert_tf.training import distribution, pjrt, session


def find(name: str, plan: session.Plan) -> pjrt.Runtime | None:
    """Returns the devices of JAX; None if TensorFlow runs the step.

    Call it before TensorFlow uses a device.

    Args:
        name: One of options.RUNTIMES.
        plan: How to train.

    Raises:
        InputError: If JAX does not train what the flags ask for.
    """
    if name != "pjrt":
        return None
    strategy = distribution.asked_for(
        run_flags.DISTRIBUTION_STRATEGY.value, run_flags.USE_TPU.value
    )
    unsupported = {
        f"distribution_strategy={strategy}": strategy != "default",
        "dtype=float16": plan.recipe.dtype == "float16",
        "use_xla=false": plan.use_xla is False,
        "auto_batch_size": plan.accumulate is None,
        "profile_steps": plan.profile_steps is not None,
        "teacher": distillation_flags.TEACHER.value is not None,
    }
    for flag, is_given in unsupported.items():
        if is_given:
            raise InputError(
                "--runtime=pjrt trains on all devices of this host that JAX "
                f"finds, and does not support --{flag}. Leave out one of the "
                f"two flags. Received: runtime=pjrt, {flag}"
            )
    return pjrt.start()
