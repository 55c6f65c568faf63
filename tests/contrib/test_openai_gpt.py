"""GPT-1 computes as in transformers, and its folders are read and written."""

import functools
import json

import bert_tf
from bert_tf import errors, heads, vocabularies
from bert_tf.checkpoints import formats
from bert_tf.contrib import openai_gpt, word_end_pairs
from bert_tf.encoders import families
from bert_tf.text import text_graph
from tests import classifier_runs
from tests import interop_samples as samples
from tests.contrib import word_end_pair_samples
from tests.huggingface_models import torch, transformers
from tests.vocabularies import byte_pair_samples

import numpy as np
import pytest
import tensorflow as tf

safetensors = pytest.importorskip("safetensors.torch")

V, S = 41, 11
SIZES = {"vocab_size": V, "n_positions": 20, "n_embd": 32, "n_layer": 3}
SIZES |= {"n_head": 4, "pad_token_id": 0, "num_labels": samples.NUM_LABELS}
CONFIG = openai_gpt.OpenAIGPTConfig(
    vocab_size=V,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    max_position_embeddings=20,
)
MODELS = {
    "OpenAIGPTModel": "encoder",
    "OpenAIGPTLMHeadModel": "next_piece",
    "OpenAIGPTForSequenceClassification": "classification",
}


@functools.cache
def _theirs(architecture):
    """Returns a transformers model with random weights."""
    torch.manual_seed(0)
    config = transformers.OpenAIGPTConfig(**SIZES)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(0, value.shape[0] ** -0.5)
            if "ln_" in name and name.endswith("weight"):
                value.uniform_(0.5, 1.5)
    return model


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    def save(architecture):
        path = tmp_path_factory.mktemp(architecture)
        _theirs(architecture).save_pretrained(path)
        return path

    return functools.cache(save)


def _batch():
    """Returns IDs and mask of rows that are padded at the end."""
    ids = np.random.default_rng(0).integers(1, V, [3, S])
    mask = np.arange(S) < np.array([[S], [7], [3]])
    return ids * mask, mask.astype(int)


def _close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", MODELS)
def test_same_outputs_as_transformers(folder, architecture):
    ids, mask = _batch()
    with torch.no_grad():
        theirs = _theirs(architecture)(
            torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            output_hidden_states=True,
        )
    model, head = samples.load(str(folder(architecture)))
    assert head == MODELS[architecture]
    inputs = {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(mask, tf.int32),
    }
    encoder = model if head == "encoder" else model.bert
    outputs = encoder(inputs)
    found = [outputs.embeddings, *outputs.layers]
    expected = theirs.hidden_states
    if head == "next_piece":
        found, expected = [*found, model(inputs)], [*expected, theirs.logits]
    for one, other in zip(found, expected, strict=True):
        _close(one.numpy()[mask > 0], other.numpy()[mask > 0])
    last = outputs.sequence.numpy()[range(3), mask.sum(1) - 1]
    np.testing.assert_array_equal(outputs.pooled, last)
    if head == "classification":
        _close(model(inputs), theirs.logits)


@pytest.mark.parametrize("architecture", MODELS)
def test_folders_are_written_as_they_were(tmp_path, folder, architecture):
    ours, back = tmp_path / "ours", tmp_path / "back"
    samples.convert(folder(architecture), "tf1", ours)
    written = samples.convert(ours, "hf", back, MODELS[architecture])
    assert not written.left_out
    model, info = getattr(transformers, architecture).from_pretrained(
        back, output_loading_info=True
    )
    assert not any(info.values()), info
    state = _theirs(architecture).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    keys = ("n_embd", "n_layer", "n_head", "n_positions", "afn")
    for key in (*keys, "layer_norm_epsilon", "attn_pdrop", "embd_pdrop"):
        found = getattr(model.config, key)
        assert found == getattr(_theirs(architecture).config, key), key


def test_names_of_the_released_file(tmp_path, folder):
    """It has a causal mask per layer, and no prefix."""
    source = folder("OpenAIGPTLMHeadModel")
    tensors = {
        name.removeprefix("transformer."): value.contiguous()
        for name, value in _theirs("OpenAIGPTLMHeadModel").state_dict().items()
        if name != "lm_head.weight"
    }
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 20, 20)
    tensors["position_ids"] = torch.arange(20)
    safetensors.save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes(
        (source / "config.json").read_bytes()
    )
    samples.assert_equal(str(tmp_path), str(source))


def test_a_bias_is_not_lost(tmp_path):
    model = samples.random_model("classification", CONFIG)
    source = samples.source(tmp_path / "ours", model, vocab=())
    with pytest.raises(errors.InputError, match=r"has no bias .*output_bias"):
        formats.write(str(tmp_path / "theirs"), "hf", source)


def test_biases_are_not_trained():
    model = heads.BertClassifier(families.make(CONFIG), 3)
    trained = {variable.path for variable in model.trained_variables}
    assert "output_weights" in trained
    assert "output_bias" not in trained
    (bias,) = heads.BertNextPiece(families.make(CONFIG)).next_piece.variables
    assert bias.path == "cls/next_piece/output_bias"
    assert not bias.trainable


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"afn": "gelu_new"}, "`afn` must be one of gelu, silu, swish, relu"),
        ({"n_special": 3}, "`n_special` must be 0"),
        ({"intermediate_size": 64}, "`intermediate_size` .* must be 128"),
        ({"type_vocab_size": 2}, "`type_vocab_size` has no effect"),
        ({"pooler_act": "tanh"}, "`pooler_act` must be one of none"),
        ({"hidden_act": "gelu_erf"}, "`hidden_act` .* must be gelu or silu"),
    ],
)
def test_other_models_are_an_error(values, message):
    ours = json.loads(CONFIG.to_json()) | values
    with pytest.raises(errors.InputError, match=message):
        openai_gpt.OpenAIGPTConfig.from_dict(ours)


@pytest.mark.parametrize("act", ["gelu", "silu", "relu"])
def test_activations_keep_their_names(act):
    config = transformers.OpenAIGPTConfig(**SIZES, afn=act).to_dict()
    ours = families.of_values(config).config.from_dict(config)
    assert ours.hidden_act == act
    theirs = openai_gpt.OPENAI_GPT.huggingface
    assert theirs is not None
    found = theirs.keys.to_theirs(ours)
    assert found.items() <= config.items()


# ---- Texts -------------------------------------------------------------------

LENGTH = 16
START, DELIMITER, CLASSIFY = word_end_pair_samples.SPECIAL


@functools.cache
def _their_tokenizer(has_special):
    """Returns OpenAIGPTTokenizer, perhaps with the tokens for fine-tuning."""
    found = json.loads(word_end_pair_samples.reference().to_str())["model"]
    merges = [tuple(pair) for pair in found["merges"]]
    made = transformers.OpenAIGPTTokenizer(found["vocab"], merges)
    if has_special:
        special = list(word_end_pair_samples.SPECIAL)
        made.add_special_tokens({"additional_special_tokens": special})
    return made


def _save_with_texts(folder, has_special, **changes):
    """Writes a model for the next token with its tokenizer."""
    tokenizer = _their_tokenizer(has_special)
    sizes = SIZES | {"vocab_size": len(tokenizer), "initializer_range": 0.2}
    torch.manual_seed(0)
    config = transformers.OpenAIGPTConfig(**sizes | changes)
    model = transformers.OpenAIGPTLMHeadModel(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("has_special", [False, True])
def test_next_tokens(tmp_path, has_special):
    model = _save_with_texts(tmp_path, has_special)
    tokenizer = _their_tokenizer(has_special)
    before = START if has_special else ""
    texts = ["The Cat sat", "naïve: 中文"]
    predictor = bert_tf.load(tmp_path, top_k=3)
    made = predictor._made
    assert made is not None
    score = made.signatures["serve_scores"]
    scored = score(text=tf.constant(texts))
    for row, (text, answer) in enumerate(
        zip(texts, predictor(texts), strict=True)
    ):
        ids = tokenizer(before + text, return_tensors="pt").input_ids
        with torch.no_grad():
            logits = model(ids).logits[0]
        # Without a token before the text, nothing predicts its first.
        following = torch.log_softmax(logits[:-1], -1)
        total = following.gather(1, ids[0, 1:, None]).sum()
        assert int(scored["count"][row]) == len(following)
        np.testing.assert_allclose(
            scored["log_probability"][row], total, rtol=1e-5
        )
        expected = torch.softmax(logits[-1], -1).topk(3)
        found = [(x["piece"], x["score"]) for x in answer["pieces"]]
        pieces, scores = zip(*found, strict=True)
        rows = expected.indices.tolist()
        assert list(pieces) == tokenizer.convert_ids_to_tokens(rows)
        np.testing.assert_allclose(scores, expected.values, atol=1e-5)
    if not has_special:
        message = "must have tokens, as no token is put before it"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            score(text=tf.constant([""]))


@pytest.mark.slow
@pytest.mark.parametrize("has_special", [True, False])
def test_tokenizers_are_written_for_transformers(tmp_path, has_special):
    theirs = tmp_path / "theirs"
    _save_with_texts(theirs, has_special)
    back = tmp_path / "back"
    samples.convert(theirs, "hf", back)
    again = formats.open_checkpoint(str(back))
    source = formats.open_checkpoint(str(theirs))
    assert source.vocab is not None
    assert again.vocab == source.vocab
    tokenizer = transformers.AutoTokenizer.from_pretrained(back)
    vocabulary = vocabularies.read(source.vocab, True, "x")
    in_graph = text_graph.make_tokenizer(vocabulary)
    first, second = ["The cat", "a"], ["sat.", "Größe"]
    pieces = [in_graph.tokenize(tf.constant(x)) for x in (first, second)]
    for one, other, text_pair in (
        (pieces[0], None, None),
        (pieces[0], pieces[1], second),
    ):
        rows = in_graph.pack(one, other, LENGTH, pad_to_max=False)
        expected = tokenizer(first, text_pair, padding=True)
        assert rows["input_ids"].numpy().tolist() == expected["input_ids"]
        mask = rows["input_mask"].numpy().tolist()
        assert mask == expected["attention_mask"]
    if has_special:
        found = tokenizer.convert_ids_to_tokens(expected["input_ids"][1])
        assert (found[0], found[2]) == (START, DELIMITER)
        assert CLASSIFY in found


def test_files_of_both_kinds_of_pairs(tmp_path):
    for name, module in (
        ("word_end_pairs", word_end_pair_samples),
        ("byte_pairs", byte_pair_samples),
    ):
        folder = tmp_path / name
        folder.mkdir()
        path = module.write(folder)
        for given in (path, folder / "merges.txt"):
            found = vocabularies.open(given, True)
            files = vocabularies.find(folder)
            assert files is not None
            assert found == vocabularies.read(files, True, "x")
            assert found.kind == name
            assert found.pieces == module.vocabulary().pieces


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lowercase": False}, "normalizer.lowercase"),
        ({"strip_accents": False}, "normalizer.strip_accents"),
    ],
)
def test_other_rules_are_an_error(tmp_path, change, message):
    found = json.loads(word_end_pair_samples.reference().to_str())
    found["normalizer"] |= change
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(found))
    with pytest.raises(errors.InputError, match=message):
        vocabularies.open(path, True)


def test_pre_training_needs_a_token_for_masked_words():
    pieces = word_end_pair_samples.vocabulary()
    assert pieces.missing == ("<mask>",)
    bare = word_end_pairs.WordEndPairs(("<unk>",), ())
    assert bare.missing == ("<mask>", START, DELIMITER, CLASSIFY)
    assert bare.template.row([5], [7]) == ([5, 7], [0, 0])


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_fine_tuning_with_the_auxiliary_loss(tmp_path):
    """After four steps, transformers gives the same probabilities."""
    _save_with_texts(tmp_path / "theirs", True, n_layer=1)
    words = ["the", "cat", "sat", "on", "mat"]
    table = classifier_runs.write_red(tmp_path / "red.tsv", "red", words, 64)
    output = tmp_path / "out"
    code = classifier_runs.run_here(
        *("--do_train", "--do_eval", f"--init_checkpoint={tmp_path}/theirs"),
        *(f"--train_file={table}", f"--dev_file={table}", "--log_steps=1"),
        *("--max_seq_length=16", "--train_batch_size=16"),
        *("--auxiliary_lm_weight=0.5", "--learning_rate=3e-3"),
        *("--num_train_epochs=1", f"--output_dir={output}"),
    )
    assert not code
    lines = classifier_runs.rows(output / "metrics.jsonl")
    losses = [line for line in lines if "label_loss" in line]
    assert len(losses) == 4
    for line in losses:
        total = line["label_loss"] + 0.5 * line["next_piece_loss"]
        assert line["loss"] == pytest.approx(total, rel=1e-5)
    texts = ["red cat on the mat", "the cat sat on mat"]
    answers = bert_tf.load(output)(texts)
    samples.convert(output / "best", "hf", tmp_path / "back", "classification")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    model = transformers.OpenAIGPTForSequenceClassification.from_pretrained(
        tmp_path / "back"
    ).eval()
    with torch.no_grad():
        rows = tokenizer(texts, padding=True, return_tensors="pt")
        scores = torch.softmax(model(**rows).logits, -1)
    labels = model.config.id2label
    for row, answer in zip(scores.tolist(), answers, strict=True):
        expected = {labels[i]: x for i, x in enumerate(row)}
        assert answer["probabilities"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("has_special", [True, False])
def test_texts_that_end_like_padding(tmp_path, has_special):
    """transformers takes <unk> for padding where there is no <pad>."""
    tokenizer = _their_tokenizer(has_special)
    config = transformers.OpenAIGPTConfig(
        **SIZES | {"vocab_size": len(tokenizer)}
    )
    model = transformers.OpenAIGPTForSequenceClassification(config)
    for saved in (model, tokenizer):
        saved.save_pretrained(tmp_path / "theirs")
    source = formats.open_checkpoint(str(tmp_path / "theirs"))
    written = formats.write(str(tmp_path / "again"), "hf", source)
    notes = [x for x in written.notes if "end with an unknown" in x]
    assert len(notes) == (not has_special)
