r"""Fills masked words with a pre-trained model of any format.

Each text contains one or more [MASK]:

    python examples/fill_masks.py uncased_L-12_H-768_A-12/bert_model.ckpt \
        "Paris is the [MASK] of France."
"""

import argparse

import bert_tf


def main(checkpoint, texts):
    """Prints the five most likely tokens for each mask of each text."""
    model = bert_tf.load(checkpoint, head="masked_lm", top_k=5)
    for text, answer in zip(texts, model(texts), strict=True):
        print(text)
        for mask in answer["masks"]:
            for found in mask:
                print(f"  {found['score']:.3f}  {found['piece']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", help="checkpoint of any format")
    parser.add_argument("texts", nargs="+", metavar="text")
    main(**vars(parser.parse_args()))
