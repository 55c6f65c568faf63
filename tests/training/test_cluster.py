import json
import re

from bert_tf.training import cluster

import pytest

TWO = ["a:1", "b:1"]


def config(cluster_=None, task=("worker", 0)):
    return json.dumps(
        {
            "cluster": cluster_ or {"worker": TWO},
            "task": {"type": task[0], "index": task[1]},
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        config(),
        config(task=("worker", 1)),
        config({"chief": ["c:5"], "worker": TWO}, ("chief", 0)),
        config({"worker": ["10.0.0.1:12345"]}),
    ],
)
def test_good_clusters_stay_as_they_are(text):
    assert cluster.find({"TF_CONFIG": text, "SLURM_PROCID": "3"}) == text


def test_others():
    chief = {"chief": ["c:5"], "worker": TWO}
    assert cluster.others(config()) == "b:1"
    assert cluster.others(config(task=("worker", 1))) == "a:1"
    assert cluster.others(config(chief, ("chief", 0))) == "a:1, b:1"
    assert cluster.others(config(chief, ("worker", 0))) == "c:5, b:1"
    many = config({"worker": [f"a{i}:1" for i in range(1000)]}, ("worker", 2))
    assert cluster.others(many).startswith("a0:1, a1:1, a3:1, ")
    assert cluster.others(many).endswith(", a8:1, and 991 more")


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "does not describe a cluster, such as .*Received: '{'"),
        ("[]", "does not describe a cluster"),
        ('{"cluster": {"worker": ["a:1"]}}', "does not describe a cluster"),
        (config({"worker": 7}), "does not describe a cluster"),
        (config(task=("worker", 2)), "worker 2, of which the cluster has 2"),
        (config(task=("worker", -1)), "this is worker -1"),
        (config(task=("chief", 0)), "chief 0, of which the cluster has 0"),
        (config(task=("ps", 0)), "it names ps, and only chief and worker"),
        (config({"worker": TWO, "evaluator": ["e:1"]}), "names evaluator"),
        (config({"chief": ["c:1", "d:1"], "worker": TWO}), "than one chief"),
        (config({"worker": ["a:1", "a:1"]}), "the same address"),
        (config({"worker": ["a", "b:1"]}), "a is not HOST:PORT"),
    ],
)
def test_clusters_that_cannot_start(text, message):
    with pytest.raises(ValueError, match=message):
        cluster.find({"TF_CONFIG": text})


def test_neither_is_there():
    with pytest.raises(ValueError, match=r"TF_CONFIG, which is not set.*srun"):
        cluster.find({"SLURM_PROCID": "0"})


def slurm(nodes, tasks, rank):
    return {
        "SLURM_JOB_ID": "123456",
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_TASKS_PER_NODE": tasks,
    }


@pytest.mark.parametrize(
    "nodes, tasks, workers",
    [
        ("gpu1", "1", ["gpu1:23456"]),
        ("gpu1", "2", ["gpu1:23456", "gpu1:23457"]),
        # In Slurm's order, not in alphabetical order: ranks follow it.
        ("n[9-10]", "1(x2)", ["n9:23456", "n10:23456"]),
        (
            "a[01-02,7],b-c",
            "2,1(x3)",
            ["a01:23456", "a01:23457", "a02:23456", "a7:23456", "b-c:23456"],
        ),
    ],
)
def test_slurm(nodes, tasks, workers):
    for rank in range(len(workers)):
        found = json.loads(cluster.find(slurm(nodes, tasks, rank)))
        assert found == {
            "cluster": {"worker": workers},
            "task": {"type": "worker", "index": rank},
        }


def test_slurm_deals_ranks_in_turn():
    environment = slurm("n[9-10]", "2(x2)", 1)
    assert cluster.find(environment | {"SLURM_NODEID": "0"})
    with pytest.raises(ValueError, match="srun --distribution=block"):
        cluster.find(environment | {"SLURM_NODEID": "1"})


@pytest.mark.parametrize("nodes", ["rack[1-2]n[3-4]", "n[1-2]-ib", "n[1"])
def test_slurm_writes_what_is_not_understood(nodes):
    received = re.escape(f"Received: SLURM_STEP_NODELIST={nodes}")
    with pytest.raises(ValueError, match=f"hosts in TF_CONFIG. {received}"):
        cluster.find(slurm(nodes, "1(x2)", 0))


@pytest.mark.parametrize(
    "nodes, tasks, rank", [("a,b", "1", 0), ("a", "2", 2), ("a[1-2]", "1", 0)]
)
def test_slurm_contradicts_itself(nodes, tasks, rank):
    with pytest.raises(ValueError, match=r"contradict each other.*PROCID"):
        cluster.find(slurm(nodes, tasks, rank))


@pytest.mark.parametrize(
    "tasks, node, local, gpus, expected",
    [
        ("8(x2)", 1, 3, 8, (3, 8)),
        ("2", 0, 1, 8, (1, 2)),
        ("8", 0, 3, 1, None),  # --gpus-per-task: Slurm assigned the GPUs
        ("4", 0, 3, 2, None),
        ("1(x2)", 1, 0, 8, None),
    ],
)
def test_share_of_gpus(tasks, node, local, gpus, expected):
    environment = slurm("a,b", tasks, 0) | {
        "SLURM_NODEID": str(node),
        "SLURM_LOCALID": str(local),
        "SLURM_GPUS_ON_NODE": "8",
    }
    assert cluster.share_of_gpus(environment, gpus) == expected


def test_gpus_that_cannot_be_shared():
    environment = slurm("a", "3", 0) | {
        "SLURM_NODEID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_GPUS_ON_NODE": "8",
    }
    with pytest.raises(ValueError, match="Received: 8 GPUs, 3 tasks"):
        cluster.share_of_gpus(environment, 8)


def test_without_slurm_all_gpus_are_ours():
    assert cluster.share_of_gpus({}, 8) is None
