"""A vocabulary for tests of added tokens."""

LENGTH = 64
PIECES = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *"abceiknoprstuvwxy12!?+,<>[]/人我ᄋ",
    *(f"##{x}" for x in "abceiknoprstuvwxy12ᅥ"),
    *("new", "york", "cafe", "paris", "strasse", "##vid"),
)
