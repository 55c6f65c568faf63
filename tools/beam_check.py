"""Creates pre-training data on a cluster, and compares it with local data.

    make beam-check

Starts a scheduler and two workers of Dask on this machine, runs
create_pretraining_data.py on them by Apache Beam and once without a runner, and
compares the bytes of all shards.
"""

import contextlib
import hashlib
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import distributed

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_WORKERS = 2
_DOCUMENTS = 4000
_WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
_START_SECONDS = 60
_FLAGS = (
    "--input_file={0}/text-*.txt --vocab_file={0}/vocab.txt --num_shards=4 "
    "--max_seq_length=64 --max_predictions_per_seq=10 --dupe_factor=3"
)


def _write_inputs(folder: pathlib.Path) -> None:
    """Writes a vocabulary and two files of documents."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, "##s", "."]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    rng = random.Random(0)
    for name in ("text-a.txt", "text-b.txt"):
        documents = (
            "\n".join(
                " ".join(rng.choices([*_WORDS, "bees"], k=rng.randint(1, 12)))
                for _ in range(rng.randint(1, 9))
            )
            for _ in range(_DOCUMENTS // 2)
        )
        (folder / name).write_text("\n\n".join(documents))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _cluster(folder: pathlib.Path) -> Iterator[distributed.Client]:
    """Runs a scheduler and its workers as processes; yields a client."""
    address = f"tcp://127.0.0.1:{_free_port()}"
    own = ["--host", address, "--no-dashboard"]
    worker = ["worker", address, "--nworkers", "1", "--nthreads", "1"]
    folders = ["--local-directory", str(folder), "--no-dashboard"]
    commands = [["scheduler", *own], *[[*worker, *folders]] * _WORKERS]
    processes = []
    with (folder / "cluster.log").open("w") as log:
        try:
            for command in commands:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "dask", *command],
                        stdout=log,
                        stderr=log,
                    )
                )
            with distributed.Client(address, timeout=_START_SECONDS) as client:
                client.wait_for_workers(_WORKERS, timeout=_START_SECONDS)
                yield client
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait()


def _create(folder: pathlib.Path, output: str, *flags: str) -> float:
    """Runs create_pretraining_data.py; returns its seconds."""
    script = _ROOT / "create_pretraining_data.py"
    inputs = _FLAGS.format(folder).split()
    out = f"--output_dir={folder / output}"
    start = time.monotonic()
    subprocess.run(
        [sys.executable, str(script), *inputs, out, *flags],
        check=True,
    )
    return time.monotonic() - start


def _sums(folder: pathlib.Path) -> dict[str, str]:
    """Returns the SHA-256 of each shard."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*.tfrecord*"))
    }


def main() -> None:
    """Runs both; exits with 1 if a byte differs or a worker did nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _write_inputs(folder)
        local = _create(folder, "local", "--num_workers=1")
        with _cluster(folder) as client:
            options = (
                f"--dask_client_address={client.scheduler.address} "
                f"--dask_npartitions={2 * _WORKERS}"
            )
            dask = _create(
                *(folder, "dask", "--runner=DaskRunner"),
                f"--beam_options={options}",
            )
            tasks = client.run(_finished_tasks)
        expected, found = _sums(folder / "local"), _sums(folder / "dask")
    print(
        f"local {local:.1f} s, Dask {dask:.1f} s; "
        f"tasks by worker: {sorted(tasks.values())}"
    )
    if not expected or found != expected or not all(tasks.values()):
        raise SystemExit(
            f"error: the data differs. Received: local {expected}, Dask {found}"
        )
    print(f"{len(expected)} shards with the same bytes")


def _finished_tasks(dask_worker: distributed.Worker) -> int:
    """Returns how many tasks a worker has run."""
    return len(dask_worker.state.log)


if __name__ == "__main__":
    main()
