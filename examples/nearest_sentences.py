r"""Semantic search: finds the sentences of a file that are nearest to yours.

The file has one sentence per line. Any BERT can compute vectors; models trained
for it, such as all-MiniLM-L6-v2, are best:

    python examples/nearest_sentences.py all-MiniLM-L6-v2 sentences.txt \
        "How do I cancel my order?"
"""

import argparse

import bert_tf

import numpy as np


def main(checkpoint, path, query, count=5):
    """Prints the nearest sentences and their cosine similarities."""
    with open(path, encoding="utf-8-sig") as file:
        sentences = [line.strip() for line in file if line.strip()]
    model = bert_tf.load(checkpoint, head="encoder", normalize=True)
    vectors = np.array([x["vector"] for x in model(sentences)])  # [B, D]
    # The vectors have length 1, so dot products are cosines.
    cosines = vectors @ np.array(model(query)["vector"])  # [B]
    for i in np.argsort(-cosines)[:count]:
        print(f"{cosines[i]:.3f}  {sentences[i]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", help="checkpoint of any format")
    parser.add_argument("path", help="file with one sentence per line")
    parser.add_argument("query", help="sentence to compare with")
    parser.add_argument("--count", type=int, default=5, help="default: 5")
    main(**vars(parser.parse_args()))
