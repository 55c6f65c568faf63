"""Tests of bert_tf/text/learning.py and of learn_vocabulary.py's main."""

import collections
import gzip
import json
import random
import re

from bert_tf import tokenization, vocabularies
from bert_tf.text import learning
from tests import scripts

import pytest

_HEAD = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Words with shared stems and endings, so that there are pieces to find.
_STEMS = ["play", "walk", "talk", "jump", "look", "kick", "help", "open"]
_ENDINGS = ["", "s", "ed", "ing", "er", "ers"]


def make_words(seed=0):
    rng = random.Random(seed)
    return collections.Counter(
        rng.choice(_STEMS) + rng.choice(_ENDINGS) for _ in range(5000)
    )


class TestCountWords:
    def test_splits_as_the_tokenizer(self):
        lines = ["Don't  PANIC, naïve\u200b one!", "", "Don't 東京"]
        assert learning.count_words(lines, do_lower_case=True) == {
            "don": 2, "'": 2, "t": 2, "panic": 1, ",": 1, "naive": 1, "one": 1,
            "!": 1, "東": 1, "京": 1,
        }  # fmt: skip
        cased = learning.count_words(lines, do_lower_case=False)
        assert cased["PANIC"] == cased["naïve"] == 1

    def test_is_the_tokenizer_on_any_text(self):
        # Cut at spaces only: control characters join, final sigmas end.
        rng = random.Random(0)
        characters = "aB ’.\t\u2028\x0b\x85\xad\0Σσά 　東☃"
        texts = [
            "".join(rng.choices(characters, k=rng.randint(0, 60)))
            for _ in range(300)
        ]
        tokenizer = tokenization.BasicTokenizer(True)
        expected = collections.Counter(
            word for text in texts for word in tokenizer.tokenize(text)
        )
        assert learning.count_words(texts, True) == expected

    def test_in_several_steps(self, monkeypatch):
        words = make_words()
        texts = [" ".join(words.elements())] * 3 + [""]
        monkeypatch.setattr(learning, "_MAX_STRINGS", 5)
        counted = learning.count_words(texts, True)
        assert counted == {word: 3 * count for word, count in words.items()}

    def test_gathers_little_text_without_spaces(self, monkeypatch):
        # As many texts at a time as take the characters beyond the limit.
        monkeypatch.setattr(learning, "_MAX_GATHERED", 1000)
        texts = [chr(0x4E00 + i) * 300 for i in range(10)]
        gathered = list(learning.count_strings(texts))
        assert [list(strings) for strings in gathered] == [
            texts[:4], texts[4:8], texts[8:]
        ]  # fmt: skip
        assert learning.count_words(texts, True) == {
            text[0]: 300 for text in texts
        }

    def test_forgets_the_rarest(self, monkeypatch):
        monkeypatch.setattr(learning, "_MAX_STRINGS", 0)
        texts = ["a b b c c c", "d d d d e e"]
        # "a" goes when "c" comes; "b" and "e" when the second text is read.
        counted = learning.count_words(texts, True, max_words=2)
        assert counted == {"c": 3, "d": 4}


class TestLearn:
    def test_order_of_the_special_tokens(self):
        pieces = learning.learn(make_words(), 100, num_unused=3)
        unused = ["[unused0]", "[unused1]", "[unused2]"]
        assert pieces[:8] == [_HEAD[0], *unused, *_HEAD[1:]]
        assert len(pieces) == len(set(pieces)) == 100

    def test_default_ids_are_those_of_the_released_vocabularies(self):
        pieces = learning.learn(make_words(), 200)
        ids = [pieces.index(piece) for piece in _HEAD]
        assert ids == [0, 100, 101, 102, 103]

    def test_joins_what_is_frequent(self):
        words = make_words()
        pieces = learning.learn(words, 1000, num_unused=0)
        assert {*_STEMS, "##ing", "##ed", "##er"} <= set(pieces)
        # All words are pieces: there was room.
        assert set(words) <= set(pieces)

    def test_every_character_is_a_piece(self):
        words = make_words()
        pieces = learning.learn(words, 45, num_unused=0)
        assert {word[0] for word in words} <= set(pieces)
        assert {f"##{x}" for word in words for x in word[1:]} <= set(pieces)
        assert len(pieces) == 45
        assert learning.coverage(pieces, words).unknown == 0

    @pytest.mark.parametrize("size", range(10, 17))
    def test_never_more_than_requested(self, size):
        # "c" and "d" never begin a word here, but may elsewhere.
        words = {"ab": 50, "bc": 40, "abcd": 30, "bcdab": 9}
        characters = [*_HEAD, "a", "b", "##a", "##b", "##c", "##d", "c", "d"]
        if size < len(characters):
            with pytest.raises(ValueError, match="and 8 characters, at the"):
                learning.learn(words, size, num_unused=0)
        else:
            pieces = learning.learn(words, size, num_unused=0)
            assert pieces[: len(characters)] == characters
            assert len(pieces) == size

    def test_min_frequency(self):
        words = {"aa": 10, "bb": 9}
        pieces = learning.learn(words, 99, min_frequency=10, num_unused=0)
        assert pieces == [*_HEAD, "a", "b", "##a", "##b", "aa"]

    def test_rare_characters_are_left_out(self):
        words = {"ab": 50, "ba": 50, "c": 40, "xa": 3, "b" * 201: 1000}
        pieces = learning.learn(words, 99, max_characters=3, num_unused=0)
        assert set(pieces) == {*_HEAD, "a", "b", "c", "##a", "##b", "ab", "ba"}

    def test_is_deterministic(self):
        # Equal frequencies everywhere: the order of joining is all ties.
        rng = random.Random(0)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = {"".join(rng.choices(letters, k=8)): 5 for _ in range(300)}
        shuffled = dict(rng.sample(list(words.items()), len(words)))
        first = learning.learn(words, 400)
        assert all(learning.learn(shuffled, 400) == first for _ in range(5))

    @pytest.mark.parametrize(
        "arguments, message",
        [
            (({}, 100), "holds no words"),
            (({"ab": 9}, 7, 2, 5, 1), "Received: vocab_size=7, max_char"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            learning.learn(*arguments)

    def test_frequent_words_are_handed_over_in_parts(self, monkeypatch):
        words = make_words()
        whole = learning.learn(words, 120, num_unused=0)
        monkeypatch.setattr(learning, "_MAX_COPIES", 7)
        parts = list(learning.copies(words))
        assert max(text.count(" ") for text in parts) == 7
        assert collections.Counter(" ".join(parts).split()) == words
        assert learning.learn(words, 120, num_unused=0) == whole


class TestExtend:
    base = (
        *(*_HEAD, "[unused0]", "the", *"abcehopsty", "[unused1]", "[unused7]"),
        *(f"##{char}" for char in "acehopsty"),
    )

    def extend(self, words, candidates, base=None):
        return learning.extend(base or self.base, words, candidates)

    def filled(self, words, candidates):
        extended = self.extend(words, candidates)
        return [
            now
            for before, now in zip(self.base, extended, strict=True)
            if before != now
        ]

    def test_fills_unused_rows_by_what_they_save(self):
        words = {"hepatocyte": 3, "cat": 5, "the": 99}
        candidates = ["hepatocyte", "cat", "##yte", "the", "spa"]
        extended = self.extend(words, candidates)
        # 27 pieces fewer, 10, and "##yte" saves none any more.
        rows = [row for row, x in enumerate(self.base) if "unused" in x]
        filled = [extended[row] for row in rows]
        assert filled == ["hepatocyte", "cat", "[unused7]"]
        rest = [x for row, x in enumerate(extended) if row not in rows]
        assert rest == [x for x in self.base if "unused" not in x]

    def test_appends_rows(self):
        words = {"hepatocyte": 3, "cat": 5, "hat": 1, "spat": 2}
        candidates = ["hepatocyte", "cat", "hat", "spat", "the"]
        rows = [row for row, x in enumerate(self.base) if "unused" in x]
        extended = learning.extend(self.base, words, candidates, 3)
        # 27, 10, 6 and 2 pieces fewer; for the third there is nothing.
        assert [extended[row] for row in rows] == ["hepatocyte", "cat", "spat"]
        assert extended[len(self.base) :] == ["hat"]
        kept = [x for x in self.base if "unused" not in x]
        assert set(kept) < set(extended)
        # A vocabulary that has no [unused] rows.
        assert learning.extend(kept, words, candidates, 2) == [
            *(*kept, "hepatocyte", "cat")
        ]

    def test_inner_pieces(self):
        words = {"cat": 4, "hat": 4, "spat": 4}
        filled = self.filled(words, ["hat", "##pat", "##at"])
        assert filled == ["##at", "##pat", "hat"]

    def test_unknown_characters_first(self):
        words = {"☃": 2, "hepatocyte": 2, "a☃": 1}
        candidates = ["hepatocyte", "☃", "##☃"]
        assert self.filled(words, candidates) == ["☃", "hepatocyte", "##☃"]
        extended = self.extend(words, candidates)
        assert learning.coverage(extended, words).unknown == 0

    def test_known_words_stay_known(self):
        # "abcd" is ab ##cd, and there is no ##d to follow "abc".
        base = [*_HEAD, "[unused0]", *("a", "b", "ab", "##c", "##cd")]
        words = {"abc": 5, "abcd": 100}
        assert self.extend(words, ["abc"], base) == base
        words = {"abc": 1001, "abcd": 100}
        assert "abc" in self.extend(words, ["abc"], base)

    def test_words_that_are_too_long_save_nothing(self):
        words = {"ca" * 101: 99, "ca" * 100: 1, "hat": 1}
        candidates = ["##cac", "hat"]
        assert self.filled(words, candidates) == ["##cac", "hat"]
        del words["ca" * 100]
        assert self.filled(words, candidates) == ["hat"]

    def test_savings_are_what_coverage_counts(self):
        words = make_words()
        base = [*_HEAD, *sorted({word[0] for word in words})]
        base += sorted({f"##{x}" for word in words for x in word[1:]})
        candidates = set(learning.learn(words, 300, num_unused=0))
        before = learning.coverage(base, words).pieces
        savings = learning._savings(words, set(base), candidates)
        assert len(savings) > 20
        for piece in candidates - set(base):
            after = learning.coverage([*base, piece], words).pieces
            # What makes a word longer elsewhere is not seen by the savings.
            assert before - after == savings.get(piece, 0)

    def test_is_deterministic(self):
        words = dict.fromkeys(make_words(), 5)
        base = [*_HEAD, *(f"[unused{i}]" for i in range(20))]
        base += sorted({x for word in words for x in word})
        base += sorted({f"##{x}" for word in words for x in word})
        candidates = learning.learn(words, 300, num_unused=0)
        first = self.extend(words, candidates, base)
        shuffled = random.Random(0).sample(list(words.items()), len(words))
        assert self.extend(dict(shuffled), candidates[::-1], base) == first
        assert not any("unused" in piece for piece in first)

    def test_refuses_a_vocabulary_without_rows(self):
        with pytest.raises(ValueError, match=r"no \[unused\] rows"):
            self.extend({"a": 1}, ["a"], base=_HEAD)


def test_coverage():
    pieces = [*_HEAD, "un", "##able", "to"]
    words = {"unable": 3, "to": 2, "cannot": 5}
    assert learning.coverage(pieces, words) == learning.Coverage(
        words=10, pieces=3 * 2 + 2 + 5, unknown=5
    )


class TestMain:
    def run(self, tmp_path, **changes):
        values = {
            "input_file": tmp_path / "text*",
            "vocab_file": tmp_path / "vocab.txt",
            "vocab_size": 150,
            **changes,
        }
        return scripts.run_checked(
            *(tmp_path / "log", "learn_vocabulary"),
            *(f"--{name}={value}" for name, value in values.items()),
        )

    @pytest.fixture
    def words(self, tmp_path):
        words = make_words()
        text = [word.title() for word in words.elements()]
        (tmp_path / "text1").write_text("\n".join(text[:99]) + "\n\n")
        (tmp_path / "text2").write_text(" ".join(text[99:]) + " ☃")
        return words + collections.Counter(["☃"])

    def test_writes_a_vocabulary(self, tmp_path, words):
        path = tmp_path / "new" / "folder" / "vocab.txt"
        characters = len(set("".join(words))) - 1
        done = self.run(tmp_path, vocab_file=path, max_characters=characters)
        tokenizer = tokenization.FullTokenizer(path)
        assert len(tokenizer.vocab) == 150
        assert tokenizer.vocab["[UNK]"] == 100
        pieces = tokenizer.tokenize("Talker ☃ helping")
        assert "".join(pieces).replace("##", "") == "talker[UNK]helping"
        screen = "\n".join(done.lines)
        assert f"from {len(words)} different words" in screen
        share = 100 / words.total()
        assert re.search(rf"5,001 words, .* {share:.3f}% of the w", screen)
        assert not list(tmp_path.rglob("*.tmp"))

    def test_names_the_flag_for_more_characters(self, tmp_path):
        # Twelve words of one character, and three times as many of three.
        rare, often = "一二三四五六七八九十百千", "东西南"
        text = "".join(rare) + often * 12
        (tmp_path / "text1").write_text(text)
        done = self.run(tmp_path, max_characters=3)
        screen = " ".join(" ".join(done.lines).split())
        assert (
            "The text has 15 different characters, and --max_characters=3 "
            "keeps the most frequent ones: 25.00 % of the words become [UNK]."
        ) in screen
        assert "--vocab_size" not in screen
        done = self.run(tmp_path, max_characters=15, overwrite="true")
        screen = " ".join(" ".join(done.lines).split())
        assert "--max_characters" not in screen
        assert "--vocab_size=150 is not reached" in screen

    def test_extends_a_vocabulary(self, tmp_path, words):
        base = [_HEAD[0], *(f"[unused{i}]" for i in range(9)), *_HEAD[1:]]
        base += sorted({x for word in words for x in word} - {"☃"})
        base += [f"##{x}" for x in base[len(_HEAD) + 9 :]]
        (tmp_path / "base.txt").write_text("\n".join(base) + "\n")
        (tmp_path / "text3").write_text("☃ " * 999)
        done = self.run(tmp_path, extend_vocab=tmp_path / "base.txt")
        pieces = list(tokenization.load_vocab(tmp_path / "vocab.txt"))
        assert [x for x in pieces if x in base] == base[:1] + base[10:]
        assert "☃" in pieces[1:10]
        screen = "\n".join(done.lines)
        assert "Filled 9 [unused] rows" in screen
        share = 100 * 1000 / (words.total() + 999)
        assert re.search(rf"as it was: .* {share:.3f}% of the w", screen)
        assert re.search(r"The text: .* 0.000% of the w", screen)

    def test_a_row_of_white_space_keeps_its_place(self, tmp_path, words):
        # As in the released Chinese vocabulary; load_vocab strips it to "".
        base = [*_HEAD[:1], "[unused1]", *_HEAD[1:], "\u2028"]
        base += sorted({x for word in words for x in word} - {"☃"})
        base += [f"##{x}" for x in base[len(_HEAD) + 2 :]]
        (tmp_path / "base.txt").write_text("\n".join(base) + "\n", "utf-8")
        done = self.run(tmp_path, extend_vocab=tmp_path / "base.txt")
        text = (tmp_path / "vocab.txt").read_text("utf-8")
        lines = text.removesuffix("\n").split("\n")
        assert lines.pop(1) != base.pop(1)
        assert lines == base
        assert "Filled 1 [unused] rows, appended 0." in "\n".join(done.lines)
        vocab = tokenization.load_vocab(tmp_path / "vocab.txt")
        assert vocab["##a"] == base.index("##a") + 1

    def test_keeps_accents_if_set(self, tmp_path):
        text = "Die Äpfel müssten schön über die Brücke.\n\n" * 9
        (tmp_path / "text1").write_text(text, "utf-8")
        self.run(tmp_path, strip_accents="false")
        path = tmp_path / "vocab.txt"
        config = tmp_path / "tokenizer_config.json"
        assert json.loads(config.read_text()) == {"strip_accents": False}
        vocabulary = vocabularies.open(path, True)
        assert {"ä", "ü", "##ü"} <= set(vocabulary.pieces)
        vocabulary.check("it")
        pieces = vocabulary.tokenizer().tokenize("ÄPFEL")
        assert "".join(pieces).replace("##", "") == "äpfel"
        # It is followed where records are made, and where it is extended.
        scripts.run_checked(
            *(tmp_path / "records.log", "create_pretraining_data"),
            f"--input_file={tmp_path / 'text1'}",
            f"--vocab_file={path}",
            f"--output_dir={tmp_path / 'records'}",
            *("--max_seq_length=32", "--max_predictions_per_seq=5"),
        )
        manifest = json.loads((tmp_path / "records/manifest.json").read_text())
        assert manifest["vocab_sha256"] == vocabulary.sha256
        more = {"extend_vocab": path, "vocab_file": tmp_path / "b/vocab.txt"}
        self.run(tmp_path, **more)
        config = tmp_path / "b/tokenizer_config.json"
        assert json.loads(config.read_text()) == {"strip_accents": False}
        with pytest.raises(AssertionError, match="set another tokenizer"):
            self.run(tmp_path, overwrite="true")
        with pytest.raises(AssertionError, match=r"named vocab\.txt"):
            self.run(tmp_path, vocab_file="de.txt", strip_accents="false")
        added = {str(len(vocabulary.pieces)): {"content": "[E1]"}}
        config = tmp_path / "tokenizer_config.json"
        config.write_text(json.dumps({"added_tokens_decoder": added}))
        with pytest.raises(AssertionError, match="whose IDs new tokens would"):
            self.run(tmp_path, extend_vocab=path, vocab_file="c/vocab.txt")

    @pytest.mark.parametrize(
        ("kind", "file", "model", "name"),
        [
            ("word_pieces", "tokenizer.json", "WordPiece", "vocab.txt"),
            ("sentence_pieces", "tokenizer.json", "Unigram", "spiece.model"),
            ("byte_pairs", "tokenizer_config.json", "", "vocab.json"),
        ],
    )
    def test_not_next_to_another_tokenizer(
        self, kind, file, model, name, tmp_path
    ):
        """Its files would be read with, or instead of, the new vocabulary."""
        content = {"add_prefix_space": True, "model": {"type": model}}
        (tmp_path / file).write_text(json.dumps(content))
        (tmp_path / "text1").write_text("a b")
        with pytest.raises(AssertionError, match="another tokenizer, such as"):
            self.run(
                tmp_path,
                kind=kind,
                vocab_size=300,
                vocab_file=tmp_path / name,
            )
        assert not (tmp_path / name).exists()

    def test_reads_all_formats(self, tmp_path, words):
        lines = [json.dumps({"body": word}) for word in words.elements()]
        data = gzip.compress("\n".join(lines).encode())
        file = tmp_path / "words.jsonl.gz"
        file.write_bytes(data)
        done = self.run(
            tmp_path,
            input_file=file,
            input_format="jsonl",
            text_field="body",
        )
        assert f"from {len(words)} different words" in "\n".join(done.lines)
