#include "model/encoder_config.hpp"

namespace trigon {
namespace {

using Head = EncoderHead;

constexpr EncoderRow kEncoders[] = {
    {"BertForPreTraining", "bert", read_bert, Head::pretraining},
    {"BertForMaskedLM", "", read_bert, Head::masked},
    {"BertModel", "", read_bert, Head::none},
    {"BertForSequenceClassification", "", read_bert, Head::sequence},
    {"BertForTokenClassification", "", read_bert, Head::tokens},
    {"BertForQuestionAnswering", "", read_bert, Head::question},
    {"RobertaForMaskedLM", "roberta", read_roberta, Head::masked},
    {"RobertaModel", "", read_roberta, Head::none},
    {"RobertaForSequenceClassification", "", read_roberta, Head::sequence},
    {"RobertaForTokenClassification", "", read_roberta, Head::tokens},
    {"RobertaForQuestionAnswering", "", read_roberta, Head::question},
    {"XLMRobertaForMaskedLM", "xlm-roberta", read_roberta, Head::masked},
    {"XLMRobertaModel", "", read_roberta, Head::none},
    {"XLMRobertaForSequenceClassification", "", read_roberta, Head::sequence},
    {"XLMRobertaForTokenClassification", "", read_roberta, Head::tokens},
    {"XLMRobertaForQuestionAnswering", "", read_roberta, Head::question},
    {"CamembertForMaskedLM", "camembert", read_roberta, Head::masked},
    {"CamembertModel", "", read_roberta, Head::none},
    {"LongformerForMaskedLM", "longformer", read_longformer, Head::masked},
    {"LongformerModel", "", read_longformer, Head::none},
    {"LongformerForSequenceClassification", "", read_longformer, Head::sequence},
    {"LongformerForQuestionAnswering", "", read_longformer, Head::question},
    {"DistilBertForMaskedLM", "distilbert", read_distilbert, Head::masked},
    {"DistilBertModel", "", read_distilbert, Head::none},
    {"DistilBertForSequenceClassification", "", read_distilbert, Head::sequence},
    {"DistilBertForTokenClassification", "", read_distilbert, Head::tokens},
    {"DistilBertForQuestionAnswering", "", read_distilbert, Head::question},
    {"AlbertForMaskedLM", "albert", read_albert, Head::masked},
    {"AlbertForPreTraining", "", read_albert, Head::pretraining},
    {"AlbertModel", "", read_albert, Head::none},
    {"AlbertForSequenceClassification", "", read_albert, Head::sequence},
    {"AlbertForQuestionAnswering", "", read_albert, Head::question},
    {"ElectraForPreTraining", "electra", read_electra, Head::pretraining},
    {"ElectraForMaskedLM", "", read_electra, Head::masked},
    {"ElectraModel", "", read_electra, Head::none},
    {"ElectraForSequenceClassification", "", read_electra, Head::sequence},
    {"ElectraForQuestionAnswering", "", read_electra, Head::question},
    {"MPNetForMaskedLM", "mpnet", read_mpnet, Head::masked},
    {"MPNetModel", "", read_mpnet, Head::none},
    {"DebertaV2Model", "deberta-v2", read_deberta, Head::none},
    {"DebertaV2ForMaskedLM", "", read_deberta, Head::masked},
    {"DebertaV2ForSequenceClassification", "", read_deberta, Head::sequence},
    {"DebertaV2ForTokenClassification", "", read_deberta, Head::tokens},
    {"DebertaV2ForQuestionAnswering", "", read_deberta, Head::question},
    {"ModernBertForMaskedLM", "modernbert", read_modernbert, Head::masked},
    {"ModernBertModel", "", read_modernbert, Head::none},
    {"ModernBertForSequenceClassification", "", read_modernbert, Head::sequence},
    {"NomicBertModel", "nomic_bert", read_nomic_bert, Head::none},
    {"EsmForMaskedLM", "esm", read_esm, Head::masked},
    {"EsmModel", "", read_esm, Head::none},
    {"EsmForSequenceClassification", "", read_esm, Head::sequence},
    {"CLIPTextModel", "clip_text_model", read_clip_text, Head::none},
    {"CLIPTextModelWithProjection", "", read_clip_text, Head::sequence},
    {"Wav2Vec2Model", "wav2vec2", read_wav2vec2, Head::none},
    {"Wav2Vec2ForCTC", "", read_wav2vec2, Head::speech},
    {"Wav2Vec2ForSequenceClassification", "", read_wav2vec2, Head::sequence},
    {"HubertModel", "hubert", read_wav2vec2, Head::none},
    {"HubertForCTC", "", read_wav2vec2, Head::speech},
    {"ASTForAudioClassification", "audio-spectrogram-transformer", read_audio_spectrogram,
     Head::sequence},
    {"ASTModel", "", read_audio_spectrogram, Head::none},
    {"T5EncoderModel", "", read_t5_encoder, Head::none},
    {"MT5EncoderModel", "", read_t5_encoder, Head::none},
    {"T5ForConditionalGeneration", "t5", read_t5, Head::none},
    {"T5WithLMHeadModel", "", read_t5, Head::none},
    {"MT5ForConditionalGeneration", "mt5", read_t5, Head::none},
    {"UMT5ForConditionalGeneration", "umt5", read_umt5, Head::none},
    {"BartForConditionalGeneration", "bart", read_bart, Head::none},
    {"BartModel", "", read_bart, Head::none},
    {"MBartForConditionalGeneration", "mbart", read_mbart, Head::none},
    {"PegasusForConditionalGeneration", "pegasus", read_pegasus, Head::none},
    {"M2M100ForConditionalGeneration", "m2m_100", read_pegasus, Head::none},
    {"MarianMTModel", "marian", read_marian, Head::none},
    {"WhisperForConditionalGeneration", "whisper", read_whisper, Head::none},
};

}  // namespace

const EncoderRow* find_encoder(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const EncoderRow& r : kEncoders)
    if (r.name == name) return &r;
  for (const EncoderRow& r : kEncoders)
    if (r.model_type == name) return &r;
  return nullptr;
}

}  // namespace trigon
