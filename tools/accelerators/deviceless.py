"""Compiles exported steps for chips that this machine does not have.

    python -m tools.accelerators.deviceless --chip=h100 /tmp/x/bert.bc
    python -m tools.accelerators.deviceless /tmp/x/bert.bc /tmp/x/span.bc

Runs in its own environment, because JAX and TensorFlow do not share a process.
Writes the optimized program to NAME.CHIP.hlo and facts about it to
NAME.CHIP.json. Without --chip, adds the number of operations to NAME.json. For
TPUs, compiling stops at the optimized program: generating code takes several
times as long.
"""

import argparse
import collections
import glob
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from tools.accelerators import chips

_POLL_SECONDS = 0.5


def _set_environment(chip: chips.Chip, dump: str) -> None:
    """Sets the variables that XLA and libtpu read when they are loaded."""
    flags = []
    if chip.is_gpu:
        # Autotuning, which also chooses Triton's products, needs a GPU.
        flags += ["--xla_gpu_autotune_level=0"]
        flags += ["--xla_gpu_enable_triton_gemm=false"]
        pattern = f"{sys.prefix}/lib/python*/site-packages/nvidia/**/bin/ptxas"
        (ptxas,) = glob.glob(pattern, recursive=True)
        folder = pathlib.Path(ptxas).parent
        flags.append(f"--xla_gpu_cuda_data_dir={folder.parent}")
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        os.environ.update(chips.TPU_ENVIRONMENT)
        flags += [f"--xla_dump_to={dump}", "--xla_dump_hlo_as_text"]
        flags.append("--xla_dump_hlo_pass_re=^NONE$")
    os.environ["XLA_FLAGS"] = " ".join(flags)
    os.environ["JAX_PLATFORMS"] = "cpu"


def _read(path: pathlib.Path, ir: Any) -> Any:
    """Returns the module of an artifact, with the state updated in place."""
    from jax._src.lib import _jax

    module = _jax.mlir.deserialize_portable_artifact(path.read_bytes())
    attributes = module.operation.attributes
    if "sym_name" not in attributes:
        attributes["sym_name"] = ir.StringAttr.get("step")
    (main,) = (
        x
        for x in module.body.operations
        if ir.StringAttr(x.attributes["sym_name"]).value == "main"
    )
    state = json.loads(path.with_suffix(".json").read_text())["state"]
    number = ir.IntegerType.get_signless(32)
    replaced = [
        {"tf.aliasing_output": ir.IntegerAttr.get(number, i)}
        for i in range(state)
    ]
    kept: list[dict[str, Any]] = [{}] * (len(main.type.inputs) - state)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get(x) for x in [*replaced, *kept]]
    )
    return module


def count(paths: Sequence[pathlib.Path]) -> None:
    """Adds the number of each operation to the JSON files of artifacts."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    counts: collections.Counter[str] = collections.Counter()

    def add(operation: Any) -> Any:
        dialect, _, name = operation.name.partition(".")
        if name == "custom_call":
            name += f" {operation.attributes['call_target_name'].value}"
        if dialect == "stablehlo" and name != "return":
            counts[name] += 1
        return ir.WalkResult.ADVANCE

    for path in paths:
        counts.clear()
        with mlir.make_ir_context():
            _read(path, ir).operation.walk(add)
        about = path.with_suffix(".json")
        known = json.loads(about.read_text()) | {"operations": counts}
        about.write_text(json.dumps(known))


def _compile(path: pathlib.Path, chip: chips.Chip) -> None:
    """Compiles an artifact, and writes the program and its memory."""
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    topology = topologies.get_topology_desc(
        platform="cuda" if chip.is_gpu else "tpu",
        topology_name=chip.topology,
        **chip.topology_options,
    )
    device: Any = topology.devices[0]
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=1,
        device_assignment=np.array([[device.id]]),
    )
    with mlir.make_ir_context():
        executable = compiler.backend_compile_and_load(
            device.client,
            _read(path, ir),
            xla_client.DeviceList((device,)),
            options,
            [],
        )
    memory = executable.get_compiled_memory_stats()
    size = memory.argument_size_in_bytes + memory.output_size_in_bytes
    size += memory.temp_size_in_bytes - memory.alias_size_in_bytes
    _write_memory(path, chip, size)
    (program,) = executable.hlo_modules()
    path.with_suffix(f".{chip.name}.hlo").write_text(program.to_string())


def _write_memory(path: pathlib.Path, chip: chips.Chip, size: int) -> None:
    about = path.with_suffix(f".{chip.name}.json")
    about.write_text(json.dumps({"memory": size}))


# ---- Whole, or up to the optimized program -----------------------------------


def compile_for(path: pathlib.Path, chip: chips.Chip) -> None:
    """Compiles an artifact in its own process, and writes its CPU seconds.

    Raises:
        SystemExit: If the compiler rejects it.
    """
    program = path.with_suffix(f".{chip.name}.hlo")
    program.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tools.accelerators.deviceless"]
    with tempfile.TemporaryDirectory() as dump:
        child = subprocess.Popen(
            [*command, f"--chip={chip.name}", f"--dump={dump}", str(path)]
        )
        if chip.is_gpu:
            child.wait()
        else:
            _stop_early(child, pathlib.Path(dump), path, chip)
    if not program.exists():
        raise SystemExit(f"{chip.name} does not compile {path.stem}.")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    about = path.with_suffix(f".{chip.name}.json")
    known = json.loads(about.read_text())
    known["compile_seconds"] = round(used.ru_utime + used.ru_stime, 1)
    about.write_text(json.dumps(known))


def _stop_early(
    child: subprocess.Popen[bytes],
    dump: pathlib.Path,
    path: pathlib.Path,
    chip: chips.Chip,
) -> None:
    """Ends a compiler for TPUs once it has written the optimized program."""
    program = report = pathlib.Path()
    while child.poll() is None:
        time.sleep(_POLL_SECONDS)
        for report in dump.glob("*after_optimizations-memory-usage-report.txt"):
            name = report.name.replace("-memory-usage-report", "")
            program = dump / name
            if program.exists() and program.read_bytes().endswith(b"\n}\n\n"):
                child.kill()
    if not program.is_file():
        return
    shutil.copy(program, path.with_suffix(f".{chip.name}.hlo"))
    space = report.read_text().partition("Memory Space: default")[2]
    found = re.search(r"Total bytes: (\d+)", space)
    _write_memory(path, chip, int(found[1]) if found else 0)


def main() -> None:
    """Counts the operations of artifacts, or compiles one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chip", choices=chips.CHIPS)
    parser.add_argument("--dump", help=argparse.SUPPRESS)
    parser.add_argument("artifacts", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.chip is None:
        count(options.artifacts)
        return
    chip = chips.CHIPS[options.chip]
    (path,) = options.artifacts
    if options.dump:
        _set_environment(chip, options.dump)
        _compile(path, chip)
    else:
        compile_for(path, chip)


if __name__ == "__main__":
    main()
