"""STUB."""

import os

from bert_tf import extras, files, tokenization, vocab_files
from bert_tf.errors import InputError

_VOCAB, _TOKENIZER, _TOKENIZER_CONFIG = (
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
)


def write(
    folder: str,
    vocabulary,
    max_length: int,
    tokenizer_class: str = "BertTokenizer",
) -> None:
    """Writes vocab.txt and what AutoTokenizer looks for.

    It raises InputError if no pieces stand for the ends of a row.
    """
    do_lower_case = vocabulary.do_lower_case
    vocab = vocabulary.files[_VOCAB].decode()
    extras.check("tokenizers", "huggingface", "Folders for transformers")
    # Of use here only, and slow to import.
    import tokenizers
    from tokenizers import (
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    ids = {piece: i for i, piece in enumerate(vocabulary.pieces)}
    cls, sep = vocab_files.CLS, vocab_files.SEP
    missing = [t for t in (cls, sep) if t not in ids]
    if missing:
        raise InputError(
            "A vocabulary must have the pieces [CLS] and [SEP], which every "
            "row begins and ends with; give another by --vocab_file. "
            f"Received: a vocabulary without {', '.join(missing)}"
        )
    files.write_text(os.path.join(folder, _VOCAB), vocab)
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            ids,
            unk_token=tokenization.UNKNOWN,
            max_input_chars_per_word=tokenization.MAX_CHARS_PER_WORD,
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = [t for t in tokenization.SPECIAL_TOKENS if t in ids]
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.BertProcessing(
        (sep, ids[sep]), (cls, ids[cls])
    )
    files.write_text(
        os.path.join(folder, _TOKENIZER), tokenizer.to_str(pretty=True)
    )
    tokens = {f"{t[1:-1].lower()}_token": t for t in special}
    files.write_json(os.path.join(folder, "special_tokens_map.json"), tokens)
    files.write_json(
        os.path.join(folder, _TOKENIZER_CONFIG),
        {
            **tokens,
            "do_lower_case": do_lower_case,
            "model_max_length": max_length,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "tokenizer_class": tokenizer_class,
        },
    )
