"""XLM-R, CamemBERT and data2vec: RoBERTa under other names in transformers.

They compute as RoBERTa does. XLM-R (Conneau et al., 2019,
https://arxiv.org/abs/1911.02116) and CamemBERT (Martin et al., 2019,
https://arxiv.org/abs/1911.03894) use SentencePiece, data2vec-text (Baevski et
al., 2022, https://arxiv.org/abs/2202.03555) uses byte-level BPE.
"""

import dataclasses
from typing import ClassVar

from bert_tf.encoders import family, roberta


@dataclasses.dataclass(frozen=True)
class XlmRobertaConfig(roberta.RobertaConfig):
    """Architecture of an XLM-R."""

    model_type: ClassVar[str] = "xlm-roberta"
    architectures: ClassVar[str] = "XLMRoberta"


@dataclasses.dataclass(frozen=True)
class CamembertConfig(roberta.RobertaConfig):
    """Architecture of a CamemBERT."""

    model_type: ClassVar[str] = "camembert"
    architectures: ClassVar[str] = "Camembert"


@dataclasses.dataclass(frozen=True)
class Data2VecTextConfig(roberta.RobertaConfig):
    """Architecture of a data2vec for text."""

    model_type: ClassVar[str] = "data2vec-text"
    architectures: ClassVar[str] = "Data2VecText"


def _row(
    config: type[roberta.RobertaConfig],
    vocabulary: str,
    prefix: str = "roberta.",
    ends: tuple[int, int] = (0, 2),
) -> family.Family:
    """Returns RoBERTa's row under other names.

    `ends` are the ids of the tokens at both ends of a text.
    """
    theirs = roberta.HUGGINGFACE
    bos, eos = ends
    written = {"bos_token_id": bos, "eos_token_id": eos}
    keys = dataclasses.replace(
        theirs.keys, written={**theirs.keys.written, **written}, told_by={}
    )
    return dataclasses.replace(
        roberta.ROBERTA,
        name=config.model_type,
        config=config,
        vocabularies=(vocabulary,),
        huggingface=theirs.renamed(
            "Roberta", config.architectures, prefix, keys
        ),
        keras_hub=None,
    )


_SENTENCES = "fairseq_sentence_pieces"
XLM_ROBERTA = _row(XlmRobertaConfig, _SENTENCES)
CAMEMBERT = _row(CamembertConfig, _SENTENCES, ends=(5, 6))
DATA2VEC_TEXT = _row(Data2VecTextConfig, "byte_pairs", "data2vec_text.")
