"""Predicts the pre-training speed of BERT on other devices.

    python -m benchmarks.scaling
    python -m benchmarks.scaling --device=H100 --devices=8 --model=large \
        --batch_size=65536 --micro_batch=64 --length=128 --steps=7038

Without flags it compares the model with published speeds and prints the error;
then it predicts phases 1 and 2 of the large-batch recipe on several clusters.

The model, a roofline with four terms:
- matrix products: computed FLOPs, at a fraction of the device's peak that
  decreases for small micro-batches;
- everything between the products: memory traffic, at a fraction of the memory
  bandwidth;
- the update: memory traffic of weights, moments and gradients, once per step;
- the all-reduce of the gradients, a ring over the slowest link. As the training
  loop reduces all gradients in one operation at the end, it does not overlap
  with computation.
The fractions are fitted to the two speeds of a single A100. The rest of the
published table tests the model, and `python -m benchmarks.scaling_here` tests
its first three terms on the local machine. The model ignores stragglers,
waiting for input, saving and startup, which grow with the number of hosts: the
more devices, the more it is an upper bound.
"""

import dataclasses
import os

from bert_tf import modeling
from bert_tf.flags import command_line
from bert_tf.training import accelerators, memory_use

from absl import flags

_DEVICE = flags.DEFINE_string("device", None, "Such as H100 or TPU v5p.")
_DEVICES = flags.DEFINE_integer("devices", 8, "How many.", lower_bound=1)
_MODEL = flags.DEFINE_enum("model", "large", ("base", "large"), "Which BERT.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 65536, "Sequences a step.", 1)
_MICRO_BATCH = flags.DEFINE_integer("micro_batch", 64, "On a device.", 1)
_LENGTH = flags.DEFINE_integer("length", 128, "Tokens of a sequence.", 1)
_STEPS = flags.DEFINE_integer("steps", 7038, "Of the whole run.", 1)

_MODELS = os.path.join(os.path.dirname(__file__), "..", "configs", "models")


@dataclasses.dataclass(frozen=True)
class Shares:
    """The fractions of a device's peaks that are reached.

    Attributes:
        products: Fraction of the FLOP/s, for large matrix products.
        memory: Fraction of the memory bandwidth.
        half_rows: Number of tokens at which products reach half of their
            fraction.
    """

    products: float
    memory: float
    half_rows: float


# Two are fitted, see the module's docstring, and one is assumed.
GPU = Shares(0.5992, 0.4849, 500.0)
# GPUs of a node have direct links; nodes are connected by one link of 200
# Gbit/s per GPU.
NODE = 8
NETWORK = 25e9

# NVIDIA DeepLearningExamples, TensorFlow 2, BERT-Large with LAMB, fp16, XLA.
# (devices, length, micro-batch, micro-batches) -> sequences/s.
PUBLISHED = {
    (1, 128, 312, 256): 485.59,
    (8, 128, 312, 32): 3799.0,
    (1, 512, 40, 768): 96.52,
    (8, 512, 40, 96): 650.0,
}
# 256 A100s, both phases: nine tenths of 6,416 steps, of 79,872; and a tenth,
# times 9,984 / 3,840, the batches of one device, of 30,720.
PUBLISHED_HOURS = 2.02


@dataclasses.dataclass(frozen=True)
class Run:
    """One phase of pre-training on a cluster.

    Attributes:
        config: Config of the model.
        device: Device type of the cluster.
        count: Number of devices.
        length: Tokens per sequence, without padding.
        micro_batch: Sequences per device and micro-batch.
        accumulate: Micro-batches per step.
        dtype: Dtype of the activations.
        shares: Fractions of the peaks.
    """

    config: modeling.BertConfig
    device: accelerators.Device
    count: int
    length: int
    micro_batch: int
    accumulate: int
    dtype: str = "bfloat16"
    shares: Shares = GPU

    @property
    def predictions(self) -> int:
        """Masked words per sequence."""
        return 20 if self.length == 128 else round(0.15 * self.length)

    @property
    def batch_size(self) -> int:
        """Sequences per step."""
        return self.count * self.micro_batch * self.accumulate

    def product_seconds(self) -> float:
        """Seconds of the matrix products of a micro-batch."""
        rows = self.micro_batch * self.length
        flops = accelerators.training_flops(
            self.config,
            self.micro_batch,
            rows,
            self.micro_batch * self.length**2,
            self.micro_batch * self.predictions,
        )
        share = self.shares.products * rows / (rows + self.shares.half_rows)
        return flops / (share * self.device.flops[self.dtype])

    def memory_seconds(self) -> float:
        """Seconds of memory traffic between the products."""
        memory = memory_use.training_memory(
            self.config,
            self.micro_batch,
            self.length,
            self.predictions,
            self.dtype,
        )
        # Stored activations are written and read once per pass, and the
        # backward pass has as much again.
        moved = 4 * memory.activations
        return moved / (self.shares.memory * self.device.bandwidth)

    def update_seconds(self) -> float:
        """Seconds of LAMB: weights, moments (in and out), gradients, norms."""
        weights = 4 * accelerators.parameters(self.config)
        return 10 * weights / (self.shares.memory * self.device.bandwidth)

    def reduce_seconds(self) -> float:
        """Seconds of the all-reduce of the gradients."""
        if self.count == 1:
            return 0.0
        gradients = 4 * accelerators.parameters(self.config)
        is_tpu = self.device.name.startswith("TPU")
        beyond = self.count > NODE and not is_tpu
        link = min(self.device.link, NETWORK * NODE if beyond else 1e15)
        return 2 * (self.count - 1) / self.count * gradients / link

    def step_seconds(self) -> float:
        """Seconds of a whole step."""
        part = self.product_seconds() + self.memory_seconds()
        rest = self.update_seconds() + self.reduce_seconds()
        return self.accumulate * part + rest

    def speed(self) -> float:
        """Sequences per second."""
        return self.batch_size / self.step_seconds()

    def memory(self) -> memory_use.Memory:
        """Returns the memory use of a device."""
        return memory_use.training_memory(
            self.config,
            self.micro_batch,
            self.length,
            self.predictions,
            self.dtype,
            accumulate=self.accumulate,
        )

    def utilization(self) -> float:
        """Returns the model FLOPs utilization: required over peak FLOP/s."""
        sequences = self.micro_batch * self.accumulate
        flops = accelerators.training_flops(
            self.config,
            sequences,
            sequences * self.length,
            sequences * self.length**2,
            sequences * self.predictions,
        )
        peak = self.device.flops[self.dtype] * self.step_seconds()
        return flops / peak


def load(name: str) -> modeling.BertConfig:
    """Returns the config of a released model."""
    path = os.path.join(_MODELS, f"{name}.json")
    return modeling.BertConfig.from_json_file(path)


def find(name: str) -> accelerators.Device:
    """Returns a device of the table; ValueError if it is missing."""
    device = accelerators.find(name)
    if device is None:
        names = ", ".join(known.name for known in accelerators.DEVICES)
        raise ValueError(
            f"--device must be one of {names}. Received: device={name!r}"
        )
    return device


def compare() -> list[tuple[str, float, float]]:
    """Returns (name, published, predicted) for each row of NVIDIA's table."""
    large, a100 = load("large"), find("A100-SXM4-80GB")
    rows = []
    for (count, length, micro, accumulate), speed in PUBLISHED.items():
        run = Run(large, a100, count, length, micro, accumulate, "float16")
        what = f"{count} x A100, {length} tokens, sequences/s"
        rows.append((what, speed, run.speed()))
    phases = [
        (5774, Run(large, a100, 256, 128, 312, 1, "float16")),
        (1666, Run(large, a100, 256, 512, 40, 3, "float16")),
    ]
    hours = sum(n * run.step_seconds() for n, run in phases) / 3600
    rows.append(("256 x A100, both phases, hours", PUBLISHED_HOURS, hours))
    return rows


def show(name: str, run: Run, steps: int) -> None:
    """Prints one prediction."""
    total = run.memory().total
    fits = "" if total < 0.9 * run.device.memory else "  DOES NOT FIT"
    hours = steps * run.step_seconds() / 3600
    print(
        f"{name:6} {run.count:4} x {run.device.name:15} {run.length:4} tokens"
        f"  batch {run.batch_size:6}  step {run.step_seconds():7.3f} s"
        f"  all-reduce {run.reduce_seconds():6.3f} s"
        f"  {run.speed():8.0f} sequences/s  {run.utilization():4.0%} of peak"
        f"  {total / 1e9:5.1f} GB  {hours:7.1f} h{fits}"
    )


def largest(config, device, length, shares):
    """Returns the largest micro-batch, a divisor of `shares`, that fits."""
    best = 1
    for size in (1 << power for power in range(10)):
        run = Run(config, device, 1, length, size, 1)
        if shares % size == 0 and run.memory().total < 0.8 * device.memory:
            best = size
    return best


def main(_):
    """Prints the comparison, then predictions."""
    print("Published (fp16, XLA; the rows of 1 x A100 are fitted)")
    for what, published, predicted in compare():
        print(
            f"  {what:38} {published:8.2f}  predicted {predicted:8.2f}"
            f"  error {predicted / published - 1:+.0%}"
        )
    if _DEVICE.value:
        count, micro_batch = _DEVICES.value, _MICRO_BATCH.value
        if _BATCH_SIZE.value % (count * micro_batch):
            raise ValueError(
                f"--batch_size must be a multiple of {count} devices times "
                f"{micro_batch} sequences. Received: "
                f"batch_size={_BATCH_SIZE.value}"
            )
        accumulate = _BATCH_SIZE.value // (count * micro_batch)
        run = Run(
            load(_MODEL.value),
            find(_DEVICE.value),
            count,
            _LENGTH.value,
            micro_batch,
            accumulate,
        )
        show(_MODEL.value, run, _STEPS.value)
        return
    print("Predicted (bfloat16, LAMB: 7,038 steps of 65,536, 1,563 of 32,768)")
    for name in ("base", "large"):
        for kind in ("H100", "H200", "TPU v4", "TPU v5e", "TPU v5p"):
            for count in (8, 64, 256):
                config, device = load(name), find(kind)
                for length, batch, steps in (
                    (128, 65536, 7038),
                    (512, 32768, 1563),
                ):
                    shares = batch // count
                    size = largest(config, device, length, shares)
                    run = Run(
                        config, device, count, length, size, shares // size
                    )
                    show(name, run, steps)


if __name__ == "__main__":
    command_line.run(main)
