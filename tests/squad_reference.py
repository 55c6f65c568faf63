"""SQuAD preprocessing of the paper's code, in plain loops over strings.

A reference written from the description of the algorithm: words are split at
white space, each is split into tokens, and positions are those of words.
"""


def words(context):
    """Returns the words of a context, and each character's word."""
    found: list[str] = []
    word_of = []
    inside = False
    for char in context:
        if char in " \t\r\n" or ord(char) == 0x202F:
            inside = False
        elif inside:
            found[-1] += char
        else:
            found.append(char)
            inside = True
        word_of.append(len(found) - 1)
    return found, word_of


def most_context_window(windows, position):
    """Returns the window that shows the most context around a token."""
    best, best_score = None, None
    for index, (start, length) in enumerate(windows):
        if not start <= position < start + length:
            continue
        left, right = position - start, start + length - 1 - position
        score = min(left, right) + 0.01 * length
        if best_score is None or score > best_score:
            best, best_score = index, score
    return best


def answer_span(tokenizer, doc_words, doc_pieces, first_piece, word_of, answer):
    """Returns the first and last token of an answer, (text, start)."""
    text, offset = answer
    first_word = word_of[offset]
    last_word = word_of[offset + len(text) - 1]
    first = first_piece[first_word]
    if last_word < len(doc_words) - 1:
        last = first_piece[last_word + 1] - 1
    else:
        last = len(doc_pieces) - 1
    wanted = " ".join(tokenizer.tokenize(text))
    for start in range(first, last + 1):
        for end in range(last, start - 1, -1):
            if " ".join(doc_pieces[start : end + 1]) == wanted:
                return start, end
    return first, last


def features(
    tokenizer,
    question,
    context,
    answer,
    max_seq_length,
    doc_stride,
    max_query_length,
):
    """Returns the features of one question.

    Args:
        answer: (text, start), or None if it is impossible.

    Returns:
        A list of dicts, and the first and last token of the answer.
    """
    query = tokenizer.tokenize(question)[:max_query_length]
    doc_words, word_of = words(context)
    doc_pieces: list[str] = []
    first_piece = []
    for word in doc_words:
        first_piece.append(len(doc_pieces))
        doc_pieces.extend(tokenizer.tokenize(word))
    first = last = -1
    if answer is not None:
        first, last = answer_span(
            tokenizer, doc_words, doc_pieces, first_piece, word_of, answer
        )
    room = max_seq_length - len(query) - 3
    windows, start = [], 0
    while start < len(doc_pieces):
        length = min(len(doc_pieces) - start, room)
        windows.append((start, length))
        if start + length == len(doc_pieces):
            break
        start += min(length, doc_stride)
    rows = []
    for index, (start, length) in enumerate(windows):
        shown = doc_pieces[start : start + length]
        pieces = ["[CLS]", *query, "[SEP]", *shown, "[SEP]"]
        head = len(query) + 2
        padding = [0] * (max_seq_length - len(pieces))
        holds = answer is not None and (
            first >= start and last <= start + length - 1
        )
        rows.append(
            {
                "input_ids": tokenizer.convert_tokens_to_ids(pieces) + padding,
                "input_mask": [1] * len(pieces) + padding,
                "segment_ids": [0] * head + [1] * (length + 1) + padding,
                "start_positions": first - start + head if holds else 0,
                "end_positions": last - start + head if holds else 0,
                "is_impossible": int(answer is None),
                "most_context": [
                    most_context_window(windows, start + i) == index
                    for i in range(length)
                ],
            }
        )
    return rows, (first, last)
