"""The original Transformer in plain PyTorch: model, training, beam search.

The layers are those of torch.nn; the formulas are those of `bert_tf.contrib`
and `bert_tf.seq2seq`: layer norms after each sum, one table of word embeddings,
dropout of attention, of sums and of embeddings.

Shapes: B sources, S source tokens, T target tokens, D hidden size, V
vocabulary, K beams. Beams of a source are rows next to each other.
"""

import dataclasses
import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

# A pair of sources and targets, as token IDs with start and end.
Pair = tuple[list[int], list[int]]
# Batches of a window have similar lengths.
_WINDOW = 50
# Steps whose speed is measured together.
_BLOCK = 10
_NO_SCORE = -1e9


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The architecture."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    units: int
    dropout: float = 0.1
    spread: float = 0.02  # standard deviation of initial weights


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to train.

    The learning rate is the paper's (section 5.3): hidden^-0.5 *
    min(step^-0.5, step * warmup^-1.5).
    """

    batch: int
    warmup: int
    label_smoothing: float = 0.1
    clip_norm: float = 1.0


@dataclasses.dataclass(frozen=True)
class Search:
    """How to search; the length penalty is GNMT's."""

    start: int
    end: int
    beams: int
    alpha: float
    max_length: int

    def penalty(self, length: int) -> float:
        """Returns the divisor of a log-probability."""
        return ((5 + length) / 6) ** self.alpha


class Transformer(nn.Module):
    """Encoder and decoder; `pad` is the ID of padding."""

    def __init__(self, sizes: Sizes, pad: int):
        super().__init__()
        self.sizes, self.pad = sizes, pad
        self.words = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.bias = nn.Parameter(torch.zeros(sizes.vocabulary))
        self.drop = nn.Dropout(sizes.dropout)
        options: dict[str, Any] = {
            "d_model": sizes.hidden,
            "nhead": sizes.heads,
            "dim_feedforward": sizes.units,
            "dropout": sizes.dropout,
            "layer_norm_eps": 1e-6,
            "batch_first": True,
        }
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**options),
            sizes.layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**options), sizes.layers
        )
        for layer in [*self.encoder.layers, *self.decoder.layers]:
            layer.dropout = nn.Identity()  # The paper has none there.
        for name, value in self.named_parameters():
            if value.ndim > 1:
                s = sizes.spread
                nn.init.trunc_normal_(value, std=s, a=-2 * s, b=2 * s)
            elif name.endswith("bias"):
                nn.init.zeros_(value)

    def encode(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the vectors of sources, [B, S, D], and whether to hide."""
        is_padding = ids == self.pad
        x = self._embed(ids)
        return self.encoder(x, src_key_padding_mask=is_padding), is_padding

    def decode(
        self, ids: torch.Tensor, memory: torch.Tensor, is_padding: torch.Tensor
    ) -> torch.Tensor:
        """Returns the vectors after target tokens, [B, T, D]."""
        length = ids.shape[1]
        return self.decoder(
            self._embed(ids),
            memory,
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            memory_key_padding_mask=is_padding,
        )

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the logits of tokens, [..., V]."""
        return nn.functional.linear(x, self.words.weight, self.bias)

    def _embed(self, ids):  # [B, T]
        size = self.sizes.hidden
        rates = 1e4 ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(ids.shape[1])[:, None] * rates
        positions = torch.cat([angles.sin(), angles.cos()], dim=1)
        return self.drop(self.words(ids) * math.sqrt(size) + positions)


def padded(rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    """Returns rows of different lengths as one tensor."""
    tensors = [torch.tensor(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tensors, True, pad)


def loss(
    model: Transformer, pairs: Sequence[Pair], label_smoothing: float
) -> torch.Tensor:
    """Returns the mean loss of target tokens."""
    halves = zip(*pairs, strict=True)
    sources, targets = (padded(rows, model.pad) for rows in halves)
    logits = model.logits(model.decode(targets[:, :-1], *model.encode(sources)))
    return nn.functional.cross_entropy(
        logits.flatten(0, 1),
        targets[:, 1:].flatten(),
        ignore_index=model.pad,
        label_smoothing=label_smoothing,
    )


def batches(
    pairs: Sequence[Pair], size: int, rng: random.Random
) -> Iterator[list[Pair]]:
    """Yields endless shuffled batches of pairs of similar lengths."""
    while True:
        rows = rng.sample(pairs, len(pairs))
        for first in range(0, len(rows), _WINDOW * size):
            window = rows[first : first + _WINDOW * size]
            window.sort(key=_tokens)
            count = len(window) // size
            for i in rng.sample(range(count), count):
                yield window[i * size : (i + 1) * size]


def _tokens(pair: Pair) -> int:
    return sum(map(len, pair))


def train(
    model: Transformer,
    pairs: Sequence[Pair],
    recipe: Recipe,
    seconds: float,
    seed: int,
) -> tuple[int, float]:
    """Trains until the time is over; returns steps and tokens/s (median).

    Time and speed are measured after the first block of steps.
    """
    optimizer = torch.optim.Adam(
        model.parameters(), betas=(0.9, 0.98), eps=1e-9
    )
    speeds: list[float] = []
    tokens = step = 0
    start = began = time.perf_counter()
    model.train()
    for batch in batches(pairs, recipe.batch, random.Random(seed)):
        step += 1
        rate = min(step**-0.5, step * recipe.warmup**-1.5)
        for group in optimizer.param_groups:
            group["lr"] = model.sizes.hidden**-0.5 * rate
        optimizer.zero_grad()
        loss(model, batch, recipe.label_smoothing).backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        tokens += sum(map(_tokens, batch))
        if step % _BLOCK:
            continue
        now = time.perf_counter()
        if step == _BLOCK:
            start = now
        else:
            speeds.append(tokens / (now - began))
        began, tokens = now, 0
        if speeds and now - start >= seconds:
            break
    return step, statistics.median(speeds)


@torch.inference_mode()
def translate(
    model: Transformer, sources: Sequence[Sequence[int]], search: Search
) -> list[list[int]]:
    """Returns the best target of each source, with its end."""
    model.eval()
    B, K, V = len(sources), search.beams, model.sizes.vocabulary
    memory, is_padding = (
        x.repeat_interleave(K, 0)
        for x in model.encode(padded(sources, model.pad))
    )
    ids = torch.full([B, K, 1], search.start)
    scores = torch.full([B, K], _NO_SCORE)
    scores[:, 0] = 0  # All beams begin alike: only the first one counts.
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(B)]
    for length in range(1, search.max_length + 1):
        x = model.decode(ids.flatten(0, 1), memory, is_padding)[:, -1]
        logs = model.logits(x).log_softmax(-1).view(B, K, V)
        most = scores[:, 0].tolist()
        scores, places = (scores[..., None] + logs).flatten(1).topk(2 * K)
        owners, last = places // V, places % V  # [B, 2 K]
        ids = torch.cat([_rows(ids, owners), last[..., None]], dim=2)
        is_end = (last == search.end) | (length == search.max_length)
        is_open = False
        for row, found in enumerate(ended):
            if not _is_open(found, most[row], search):
                continue
            found += [
                (float(scores[row, k]) / search.penalty(length),
                 ids[row, k, 1:].tolist())
                for k in range(K)
                if is_end[row, k]
            ]  # fmt: skip
            found.sort(key=lambda pair: -pair[0])
            del found[K:]
            is_open = True
        if not is_open:
            break
        scores, kept = scores.masked_fill(is_end, _NO_SCORE).topk(K)
        ids = _rows(ids, kept)
        rows = torch.arange(B)[:, None] * K + owners.gather(1, kept)
        memory = memory[rows.flatten()]
    return [found[0][1] for found in ended]


def _rows(ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Returns the targets [B, n, T] at places [B, n]."""
    index = places[..., None].expand(-1, -1, ids.shape[2])
    return ids.gather(1, index)


def _is_open(found: list, best: float, search: Search) -> bool:
    """Whether better targets of a source may still be found."""
    if len(found) < search.beams:
        return search.beams > 1 or not found
    if search.beams == 1:
        return False
    return best / search.penalty(search.max_length) > found[-1][0]
