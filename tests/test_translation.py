"""The models of benchmarks/translation.py are the same, and its table."""

from benchmarks import translation
from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families
from bert_tf.seq2seq import beam_search, decoder, seq2seq_objective

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
theirs = pytest.importorskip("benchmarks.torch_transformer")

SIZES = theirs.Sizes(
    vocabulary=19, hidden=16, layers=2, heads=2, units=24, dropout=0.0
)
START, END, PAD = 2, 3, 0

_PARTS = {
    "attention/output/dense": "self_attn.out_proj",
    "attention/output/LayerNorm": "norm1",
    "crossattention/output/dense": "multihead_attn.out_proj",
    "crossattention/output/LayerNorm": "norm2",
    "intermediate/dense": "linear1",
    "output/dense": "linear2",
}


def name_of(path):
    """Returns PyTorch's name of our variable, and its rows if it is a part."""
    if path.endswith("word_embeddings"):
        return "words.weight", None
    if path.endswith("output_bias"):
        return "bias", None
    half = "encoder" if path.startswith("bert/") else "decoder"
    number, _, rest = path.partition("layer_")[2].partition("/")
    part, _, kind = rest.rpartition("/")
    before = f"{half}.layers.{number}."
    end = "weight" if kind in ("kernel", "gamma") else "bias"
    if "/self/" in part:
        cross = part.startswith("cross")
        place = ("query", "key", "value").index(part.rpartition("/")[2])
        attention = "multihead_attn" if cross else "self_attn"
        size = SIZES.hidden
        rows = slice(place * size, (place + 1) * size)
        return f"{before}{attention}.in_proj_{end}", rows
    last = "norm2" if half == "encoder" else "norm3"
    return f"{before}{_PARTS.get(part, last)}.{end}", None


@pytest.fixture(scope="module", name="both")
def _both():
    """PyTorch's model with random weights, and ours with the same."""
    torch.manual_seed(3)
    other = theirs.Transformer(SIZES, PAD).eval()
    for name, value in other.named_parameters():
        is_norm = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(value, 1.0 if is_norm else 0.0, 0.6)
    with torch.no_grad():
        other.bias[END] += 3  # Some targets end early.
    model = decoder.Seq2Seq(
        families.make(
            encoder_decoders.VaswaniConfig(
                vocab_size=SIZES.vocabulary,
                hidden_size=SIZES.hidden,
                num_hidden_layers=SIZES.layers,
                num_attention_heads=SIZES.heads,
                intermediate_size=SIZES.units,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                max_position_embeddings=32,
            )
        )
    )
    state = dict(other.named_parameters())
    used = set()
    for variable in model.variables:
        name, rows = name_of(variable.path)
        used.add(name)
        value = state[name].detach().numpy()
        value = value if rows is None else value[rows]
        variable.assign(value.T if variable.path.endswith("kernel") else value)
    assert used == state.keys()
    return other, model


def pairs():
    rng = np.random.default_rng(0)

    def row(length):
        return [START, *rng.integers(4, 19, length).tolist(), END]

    return [(row(3 + i), row(7 - i)) for i in range(5)]


def test_losses_are_the_same(both):
    other, model = both
    batch = {"row_weights": tf.ones([5])}
    halves = zip(*pairs(), strict=True)
    for name, rows in zip(("input", "target"), halves, strict=True):
        ids = theirs.padded(rows, PAD).numpy()
        batch[f"{name}_ids"] = tf.constant(ids, tf.int32)
        batch[f"{name}_mask"] = tf.constant(ids != PAD, tf.int32)
    objective = seq2seq_objective.make_objective(0.1)
    total = objective.sums(model, batch, None)["target"]["loss"]
    count = objective.weights(batch)["target"]
    expected = theirs.loss(other, pairs(), 0.1).item()
    assert float(total / count) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
def test_translations_are_the_same(both, beams):
    other, model = both
    sources = [source for source, _ in pairs()]
    search = theirs.Search(START, END, beams, alpha=0.6, max_length=9)
    expected = theirs.translate(other, sources, search)
    model.search = beam_search.Search(START, END, PAD, 19, 9, beams, alpha=0.6)
    ids = theirs.padded(sources, PAD).numpy()
    found = tf.function(model, autograph=False)(
        {"input_ids": tf.constant(ids), "input_mask": tf.constant(ids != PAD)}
    )["target_ids"].numpy()
    rows = [
        list(row[: len(own)]) for row, own in zip(found, expected, strict=True)
    ]
    assert rows == expected
    assert len({len(row) for row in expected}) > 1


def test_learns(both):
    """A few steps on one pair; its time is over at once."""
    torch.manual_seed(0)
    model = theirs.Transformer(SIZES, PAD)
    own = [pairs()[0]] * 8
    before = theirs.loss(model, own, 0.0).item()
    recipe = theirs.Recipe(batch=4, warmup=20)
    steps, speed = theirs.train(model, own, recipe, seconds=0, seed=0)
    assert (steps, speed > 0) == (20, True)
    assert theirs.loss(model.eval(), own, 0.0).item() < before


def test_table():
    def run(bleu, speed):
        return {"bleu": bleu, "steps": 1000, "tokens_per_second": speed}

    results = {
        "vaswani": [run(30, 300), run(32, 300)],
        "pytorch": [run(31, 200)],
    }
    _, ours, other = translation.table(results)
    assert ours.endswith(" 30.00 32.00  31.00   1.41   1,000       300   1.50")
    assert other.endswith(" 31.00  31.00      -   1,000       200   1.00")


def test_other_options_need_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(translation.commands, "run", lambda *_: None)
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("a\n")

    def start(*given):
        folders = (f"--data_dir={tmp_path}", f"--output_dir={tmp_path}/out")
        args = translation._arguments([*folders, *given])
        translation.Benchmark(args).make_vocabulary()

    start("--minutes=1")
    start("--minutes=1", "--seeds=3", "--models=bilstm")
    with pytest.raises(SystemExit, match=r"Received: --minutes=2\.0$"):
        start("--minutes=2")


@pytest.mark.exhaustive
def test_both_transformers_on_a_few_lines(tmp_path, capsys):
    pytest.importorskip("sacrebleu", reason="needs the extra `seq2seq`")
    text = "a man a dog the boy a girl the ball a car two men the park"
    lines = [text[i % 7 : 20 + i] for i in range(40)]
    for name in ("train", "test_2016_flickr"):
        for language in ("en", "de"):
            text = "\n".join(lines if name == "train" else lines[:5]) + "\n"
            (tmp_path / f"{name}.{language}").write_text(text)
    translation.main(
        [
            *(f"--data_dir={tmp_path}", f"--output_dir={tmp_path}/out"),
            *("--minutes=0.02", "--batch=8", "--vocab_size=300"),
            *("--max_length=16", "--models=vaswani,pytorch"),
        ]
    )
    output = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in output[-2:]}
    assert rows.keys() == {"vaswani", "pytorch"}
    for model in rows:
        texts = (tmp_path / "out" / f"{model}_0.de").read_text().splitlines()
        assert len(texts) == 5
