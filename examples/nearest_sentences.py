r"""Finds the sentences of a file that are nearest to yours.

The file has a sentence a line. Any BERT makes vectors; one that was trained to
do so, such as all-MiniLM-L6-v2, makes good ones:

    python examples/nearest_sentences.py all-MiniLM-L6-v2 sentences.txt \
        "How do I cancel my order?"
"""

import sys

import bert_tf

import numpy as np


def main(checkpoint, path, query, count=5):
    """Prints the nearest sentences, with their cosines."""
    with open(path, encoding="utf-8") as file:
        sentences = [line.strip() for line in file if line.strip()]
    model = bert_tf.load(checkpoint, head="encoder", normalize=True)
    vectors = np.array([x["vector"] for x in model(sentences)])  # [B, D]
    # Of vectors of the length 1, products are cosines.
    cosines = vectors @ np.array(model(query)["vector"])  # [B]
    for i in np.argsort(-cosines)[:count]:
        print(f"{cosines[i]:.3f}  {sentences[i]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
