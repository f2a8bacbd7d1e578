"""Encoders and encoder-decoders of the catalogue: id -> (source, date, facts), and their aliases.

Facts are those of the published config.json, in the catalogue's words. A date is that of the
paper or of the weights' release. Published weights are in 32 bit; `dtype` is what engines run
them in (vLLM casts 32-bit checkpoints to 16 bit unless told otherwise, TensorRT and
FasterTransformer are built for 16 bit).
"""

BERT = "arXiv:1810.04805 section 3; google-research/bert bert_config.json"


def bert(architecture, layers, hidden, **more):
    facts = {"architecture": architecture, "layers": layers, "hidden": hidden,
             "heads": hidden // 64, "ffn": 4 * hidden, "vocabulary": 30522, "context_tokens": 512,
             "token_types": 2, "dtype": "f16"}
    facts.update(more)
    return {k: v for k, v in facts.items() if v is not None}


def roberta(architecture, layers, hidden, **more):
    return bert(architecture, layers, hidden, **{"vocabulary": 50265, "context_tokens": 514,
                                                 "token_types": 1, **more})


def t5(layers, hidden, heads, head_dim, ffn, **more):
    facts = {"architecture": "T5ForConditionalGeneration", "layers": layers, "hidden": hidden,
             "heads": heads, "head_dim": head_dim, "ffn": ffn, "vocabulary": 32128,
             "relative.buckets": 32, "gated": False, "tied": True, "dtype": "bf16"}
    facts.update(more)
    return facts


def flan(layers, hidden, heads, ffn):
    return t5(layers, hidden, heads, 64, ffn, gated=True, tied=False)


def seq2seq(architecture, layers, hidden, heads, ffn, vocabulary, **more):
    facts = {"architecture": architecture, "layers": layers, "hidden": hidden, "heads": heads,
             "ffn": ffn, "vocabulary": vocabulary, "dtype": "f16"}
    facts.update(more)
    return facts


def whisper(encoder, decoder, hidden, vocabulary, mel):
    return seq2seq("WhisperForConditionalGeneration", encoder, hidden, hidden // 64, 4 * hidden,
                   vocabulary, decoder_layers=decoder, mel_bins=mel, source_positions=1500,
                   context_tokens=448)


ROBERTA = "arXiv:1907.11692 table 9; FacebookAI/roberta config.json"
T5 = "arXiv:1910.10683 section 3.7; google-t5 config.json"
FLAN = "arXiv:2210.11416; google/flan-t5 config.json"
WHISPER = "arXiv:2212.04356 table 1; openai/whisper config.json"
DEBERTA = "arXiv:2111.09543; microsoft/deberta-v3 config.json"
VASWANI = "arXiv:1706.03762 table 3"

V3 = {"token_types": None, "vocabulary": 128100, "positions_in_input": False,
      "relative.attention": True, "relative.buckets": 256, "relative.norm": "layer_norm",
      "relative.shared_keys": True}

EXTRA = {
    "bert-base": (BERT, "2018-10", bert("BertForPreTraining", 12, 768)),
    "bert-large": (BERT, "2018-10", bert("BertForPreTraining", 24, 1024)),
    "bert-base-squad": (BERT, "2018-10", bert("BertForQuestionAnswering", 12, 768)),
    "bert-large-squad": (BERT, "2018-10", bert("BertForQuestionAnswering", 24, 1024)),
    "bert-large-classifier": (BERT, "2018-10", bert("BertForSequenceClassification", 24, 1024)),
    "bert-6b": ("NVIDIA/FasterTransformer, benchmark script of bert-6B: 32 layers, 32 heads of 128, "
                "feed-forward 4 x hidden; vocabulary of BERT", "2022-12",
                bert("BertModel", 32, 4096, heads=32, context_tokens=1024)),
    "roberta-base": (ROBERTA, "2019-07", roberta("RobertaForMaskedLM", 12, 768)),
    "roberta-large": (ROBERTA, "2019-07", roberta("RobertaForMaskedLM", 24, 1024)),
    "roberta-large-squad": (ROBERTA, "2019-07", roberta("RobertaForQuestionAnswering", 24, 1024)),
    "xlm-roberta-base": ("arXiv:1911.02116 table 5", "2019-11",
                         roberta("XLMRobertaForMaskedLM", 12, 768, vocabulary=250002)),
    "xlm-roberta-large": ("arXiv:1911.02116 table 5", "2019-11",
                          roberta("XLMRobertaForMaskedLM", 24, 1024, vocabulary=250002)),
    "distilbert-base": ("arXiv:1910.01108; distilbert-base-uncased config.json", "2019-10",
                        bert("DistilBertForMaskedLM", 6, 768, token_types=None)),
    "distilbert-base-classifier": (
        "arXiv:1910.01108; distilbert-base-uncased config.json", "2019-10",
        bert("DistilBertForSequenceClassification", 6, 768, token_types=None)),
    "albert-base-v2": ("arXiv:1909.11942 table 1", "2019-09",
                       bert("AlbertForMaskedLM", 12, 768, vocabulary=30000, embedding_width=128)),
    "albert-large-v2": ("arXiv:1909.11942 table 1", "2019-09",
                        bert("AlbertForMaskedLM", 24, 1024, vocabulary=30000,
                             embedding_width=128)),
    "albert-xxlarge-v2": ("arXiv:1909.11942 table 1", "2019-09",
                          bert("AlbertForMaskedLM", 12, 4096, vocabulary=30000,
                               embedding_width=128, heads=64, ffn=16384)),
    "electra-small": ("arXiv:2003.10555 table 6", "2020-03",
                      bert("ElectraForPreTraining", 12, 256, heads=4, ffn=1024,
                           embedding_width=128)),
    "electra-base": ("arXiv:2003.10555 table 6", "2020-03",
                     bert("ElectraForPreTraining", 12, 768)),
    "electra-large": ("arXiv:2003.10555 table 6", "2020-03",
                      bert("ElectraForPreTraining", 24, 1024)),
    "deberta-v3-base": (DEBERTA, "2021-11", bert("DebertaV2Model", 12, 768, **V3)),
    "deberta-v3-large": (DEBERTA, "2021-11", bert("DebertaV2Model", 24, 1024, **V3)),
    "modernbert-base": ("arXiv:2412.13663 table 4; answerdotai/ModernBERT-base config.json",
                        "2024-12", bert("ModernBertForMaskedLM", 22, 768, ffn=1152,
                                        vocabulary=50368, context_tokens=8192, token_types=None)),
    "modernbert-large": ("arXiv:2412.13663 table 4; answerdotai/ModernBERT-large config.json",
                         "2024-12", bert("ModernBertForMaskedLM", 28, 1024, ffn=2624,
                                         vocabulary=50368, context_tokens=8192,
                                         token_types=None)),
    "longformer-base": ("arXiv:2004.05150; allenai/longformer-base-4096 config.json", "2020-04",
                        roberta("LongformerForMaskedLM", 12, 768, context_tokens=4098,
                                window_tokens=512)),
    "longformer-large": ("arXiv:2004.05150; allenai/longformer-large-4096 config.json", "2020-04",
                         roberta("LongformerForMaskedLM", 24, 1024, context_tokens=4098,
                                 window_tokens=512)),
    "nomic-embed-text-v1": ("arXiv:2402.01613; nomic-ai/nomic-embed-text-v1 config.json",
                            "2024-02", bert("NomicBertModel", 12, 768, vocabulary=30528,
                                            context_tokens=8192, gated_activation="swiglu")),
    "esm1b-650m": ("facebook/esm1b_t33_650M_UR50S config.json", "2020-12",
                   bert("EsmForMaskedLM", 33, 1280, heads=20, vocabulary=33, context_tokens=1026,
                        token_types=None, embedding_norm=True)),
    "wav2vec2-base": ("arXiv:2006.11477 section 4.2; facebook/wav2vec2-base config.json",
                      "2020-06",
                      bert("Wav2Vec2ForSequenceClassification", 12, 768, vocabulary=32,
                           context_tokens=None, token_types=None, norm_before=False,
                           feature_norm="group", feature_bias=False)),
    "wav2vec2-large": ("arXiv:2006.11477 section 4.2; facebook/wav2vec2-large-lv60 config.json",
                       "2020-06",
                       bert("Wav2Vec2ForCTC", 24, 1024, vocabulary=32, context_tokens=None,
                            token_types=None, norm_before=True, feature_norm="layer",
                            feature_bias=True)),
    "hubert-base": ("arXiv:2106.07447 table 1", "2021-06",
                    bert("HubertModel", 12, 768, vocabulary=32, context_tokens=None,
                         token_types=None, norm_before=False, feature_norm="group",
                         feature_bias=False)),
    "audio-spectrogram-transformer": (
        "arXiv:2104.01778; MIT/ast-finetuned-speech-commands-v2 config.json", "2021-04",
        bert("ASTForAudioClassification", 12, 768, vocabulary=None, context_tokens=None,
             token_types=None, mel_bins=128, audio_frames=128, labels=35)),
    "t5-small": (T5, "2019-10", t5(6, 512, 8, 64, 2048)),
    "t5-base": (T5, "2019-10", t5(12, 768, 12, 64, 3072)),
    "t5-large": (T5, "2019-10", t5(24, 1024, 16, 64, 4096)),
    "t5-3b": (T5, "2019-10", t5(24, 1024, 32, 128, 16384)),
    "t5-11b": (T5, "2019-10", t5(24, 1024, 128, 128, 65536)),
    "flan-t5-small": (FLAN, "2022-10", flan(8, 512, 6, 1024)),
    "flan-t5-base": (FLAN, "2022-10", flan(12, 768, 12, 2048)),
    "flan-t5-large": (FLAN, "2022-10", flan(24, 1024, 16, 2816)),
    "flan-t5-xl": (FLAN, "2022-10", flan(24, 2048, 32, 5120)),
    "t0-3b": ("arXiv:2110.08207: T5 1.1 XL, adapted; bigscience config.json", "2021-10",
              flan(24, 2048, 32, 5120)),
    "mt0-xxl": ("arXiv:2211.01786: mT5-XXL (arXiv:2010.11934, google/mt5-xxl config.json)", "2022-11",
                dict(flan(24, 4096, 64, 10240), vocabulary=250112)),
    "flan-t5-xxl": (FLAN, "2022-10", flan(24, 4096, 64, 10240)),
    "bart-base": ("arXiv:1910.13461; facebook/bart-base config.json", "2019-10",
                  seq2seq("BartForConditionalGeneration", 6, 768, 12, 3072, 50265,
                          context_tokens=1024)),
    "bart-large": ("arXiv:1910.13461; facebook/bart-large config.json", "2019-10",
                   seq2seq("BartForConditionalGeneration", 12, 1024, 16, 4096, 50265,
                           context_tokens=1024)),
    "mbart-large": ("arXiv:2001.08210; facebook/mbart-large-cc25 config.json", "2020-01",
                    seq2seq("MBartForConditionalGeneration", 12, 1024, 16, 4096, 250027,
                            context_tokens=1024)),
    "pegasus-large": ("arXiv:1912.08777; google/pegasus-large config.json", "2019-12",
                      seq2seq("PegasusForConditionalGeneration", 16, 1024, 16, 4096, 96103,
                              context_tokens=1024)),
    "nllb-200-600m": ("arXiv:2207.04672; facebook/nllb-200-distilled-600M config.json", "2022-07",
                      seq2seq("M2M100ForConditionalGeneration", 12, 1024, 16, 4096, 256206,
                              context_tokens=1024)),
    "nllb-200-1.3b": ("arXiv:2207.04672; facebook/nllb-200-1.3B config.json", "2022-07",
                      seq2seq("M2M100ForConditionalGeneration", 24, 1024, 16, 8192, 256206,
                              context_tokens=1024)),
    "nllb-200-3.3b": ("arXiv:2207.04672; facebook/nllb-200-3.3B config.json", "2022-07",
                      seq2seq("M2M100ForConditionalGeneration", 24, 2048, 16, 8192, 256206,
                              context_tokens=1024)),
    "transformer-base": (VASWANI + "; vocabulary of 37,000 from its section 5.1", "2017-06",
                         seq2seq("MarianMTModel", 6, 512, 8, 2048, 37000, context_tokens=1024)),
    "transformer-big": (
        VASWANI + "; NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer: joined "
        "dictionary of 33,708", "2017-06",
        seq2seq("MarianMTModel", 6, 1024, 16, 4096, 33708, context_tokens=1024)),
    "whisper-tiny": (WHISPER, "2022-09", whisper(4, 4, 384, 51865, 80)),
    "whisper-base": (WHISPER, "2022-09", whisper(6, 6, 512, 51865, 80)),
    "whisper-small": (WHISPER, "2022-09", whisper(12, 12, 768, 51865, 80)),
    "whisper-medium": (WHISPER, "2022-09", whisper(24, 24, 1024, 51865, 80)),
    "whisper-large-v2": (WHISPER, "2022-12", whisper(32, 32, 1280, 51865, 80)),
    "whisper-large-v3": ("openai/whisper-large-v3 config.json", "2023-11",
                         whisper(32, 32, 1280, 51866, 128)),
    "whisper-large-v3-turbo": ("openai/whisper-large-v3-turbo config.json", "2024-10",
                               whisper(32, 4, 1280, 51866, 128)),
}

ALIASES = {
    "bert-base": ["google-bert/bert-base-uncased", "bert-base-uncased"],
    "bert-large": ["google-bert/bert-large-uncased", "bert-large-uncased",
                   "bert-large-uncased-whole-word-masking"],
    "bert-6b": ["BERT-6B"],
    "roberta-base": ["FacebookAI/roberta-base"],
    "roberta-large": ["FacebookAI/roberta-large"],
    "xlm-roberta-base": ["FacebookAI/xlm-roberta-base", "xlm-r-base"],
    "xlm-roberta-large": ["FacebookAI/xlm-roberta-large", "xlm-r-large"],
    "distilbert-base": ["distilbert/distilbert-base-uncased", "distilbert"],
    "albert-base-v2": ["albert/albert-base-v2", "albert-base"],
    "albert-large-v2": ["albert/albert-large-v2", "albert-large"],
    "albert-xxlarge-v2": ["albert/albert-xxlarge-v2", "albert-xxlarge"],
    "electra-small": ["google/electra-small-discriminator"],
    "electra-base": ["google/electra-base-discriminator"],
    "electra-large": ["google/electra-large-discriminator"],
    "deberta-v3-base": ["microsoft/deberta-v3-base"],
    "deberta-v3-large": ["microsoft/deberta-v3-large"],
    "modernbert-base": ["answerdotai/ModernBERT-base"],
    "modernbert-large": ["answerdotai/ModernBERT-large"],
    "longformer-base": ["allenai/longformer-base-4096", "longformer"],
    "longformer-large": ["allenai/longformer-large-4096"],
    "nomic-embed-text-v1": ["nomic-ai/nomic-embed-text-v1"],
    "esm1b-650m": ["facebook/esm1b_t33_650M_UR50S", "esm1b"],
    "wav2vec2-base": ["facebook/wav2vec2-base"],
    "wav2vec2-large": ["facebook/wav2vec2-large-lv60", "wav2vec2-large-lv60"],
    "hubert-base": ["facebook/hubert-base-ls960"],
    "audio-spectrogram-transformer": ["MIT/ast-finetuned-speech-commands-v2",
                                      "ast-finetuned-speech-commands-v2"],
    "t5-small": ["google-t5/t5-small"],
    "t5-base": ["google-t5/t5-base"],
    "t5-large": ["google-t5/t5-large"],
    "t5-3b": ["google-t5/t5-3b"],
    "t5-11b": ["google-t5/t5-11b"],
    "flan-t5-small": ["google/flan-t5-small"],
    "flan-t5-base": ["google/flan-t5-base"],
    "flan-t5-large": ["google/flan-t5-large"],
    "flan-t5-xl": ["google/flan-t5-xl"], "t0-3b": ["bigscience/T0_3B"],
    "mt0-xxl": ["bigscience/mt0-xxl"],
    "flan-t5-xxl": ["google/flan-t5-xxl"],
    "bart-base": ["facebook/bart-base"],
    "bart-large": ["facebook/bart-large"],
    "mbart-large": ["facebook/mbart-large-cc25"],
    "pegasus-large": ["google/pegasus-large"],
    "nllb-200-600m": ["facebook/nllb-200-distilled-600M"],
    "nllb-200-1.3b": ["facebook/nllb-200-1.3B"],
    "nllb-200-3.3b": ["facebook/nllb-200-3.3B"],
    "whisper-tiny": ["openai/whisper-tiny"],
    "whisper-base": ["openai/whisper-base"],
    "whisper-small": ["openai/whisper-small"],
    "whisper-medium": ["openai/whisper-medium"],
    "whisper-large-v2": ["openai/whisper-large-v2"],
    "whisper-large-v3": ["openai/whisper-large-v3"],
    "whisper-large-v3-turbo": ["openai/whisper-large-v3-turbo", "whisper-turbo"],
}
