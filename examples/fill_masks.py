r"""Fills masked words with a pre-trained model of any format.

It takes the checkpoint, and texts that hold [MASK]:

    python examples/fill_masks.py uncased_L-12_H-768_A-12/bert_model.ckpt \
        "Paris is the [MASK] of France."
"""

import sys

import bert_tf


def main(checkpoint, *texts):
    """Prints the five likeliest pieces for each mask of each text."""
    model = bert_tf.load(checkpoint, head="masked_lm", top_k=5)
    for text, answer in zip(texts, model(list(texts)), strict=True):
        print(text)
        for mask in answer["masks"]:
            for found in mask:
                print(f"  {found['score']:.3f}  {found['piece']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
