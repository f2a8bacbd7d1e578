#pragma once
// Configs of encoders and of encoder-decoders: which classes are known, and how each family's
// fields become a spec.

#include <string>
#include <string_view>

#include "model/config_reader.hpp"
#include "model/decoder_spec.hpp"

namespace trigon {

// What a class puts on top of an encoder.
enum class EncoderHead : std::uint8_t {
  none,         // hidden states, with the family's pooler where it has one
  masked,       // a projection, a norm and the tied vocabulary
  pretraining,  // the same and a second task (next sentence; ELECTRA: replaced tokens)
  sequence,     // one label a sequence
  tokens,       // labels of every position
  question,     // start and end of the answer
  speech        // connectionist temporal classification: letters of every frame
};

struct EncoderRow {
  std::string_view name;        // class in `architectures`
  std::string_view model_type;  // where `architectures` is absent: the first row of a type counts
  void (*read)(ConfigReader&, EncoderHead, DecoderSpec&);
  EncoderHead head = EncoderHead::none;
};

// A dimension as a file states it. What cannot be one becomes -1, which the builder refuses by
// name, so that products before it stay within 64 bits.
inline std::int64_t dimension(std::int64_t v) { return v >= 0 && v <= (1 << 26) ? v : -1; }

const EncoderRow* find_encoder(std::string_view name);

// Families, each of its published modelling code (transformers, or what the comment names).
void read_bert(ConfigReader&, EncoderHead, DecoderSpec&);
void read_roberta(ConfigReader&, EncoderHead, DecoderSpec&);
void read_longformer(ConfigReader&, EncoderHead, DecoderSpec&);
void read_distilbert(ConfigReader&, EncoderHead, DecoderSpec&);
void read_albert(ConfigReader&, EncoderHead, DecoderSpec&);
void read_electra(ConfigReader&, EncoderHead, DecoderSpec&);
void read_mpnet(ConfigReader&, EncoderHead, DecoderSpec&);
void read_deberta(ConfigReader&, EncoderHead, DecoderSpec&);
void read_modernbert(ConfigReader&, EncoderHead, DecoderSpec&);
void read_nomic_bert(ConfigReader&, EncoderHead, DecoderSpec&);
void read_esm(ConfigReader&, EncoderHead, DecoderSpec&);
void read_clip_text(ConfigReader&, EncoderHead, DecoderSpec&);
void read_wav2vec2(ConfigReader&, EncoderHead, DecoderSpec&);
void read_audio_spectrogram(ConfigReader&, EncoderHead, DecoderSpec&);
void read_t5(ConfigReader&, EncoderHead, DecoderSpec&);
void read_umt5(ConfigReader&, EncoderHead, DecoderSpec&);
void read_t5_encoder(ConfigReader&, EncoderHead, DecoderSpec&);
void read_bart(ConfigReader&, EncoderHead, DecoderSpec&);
void read_mbart(ConfigReader&, EncoderHead, DecoderSpec&);
void read_pegasus(ConfigReader&, EncoderHead, DecoderSpec&);
void read_marian(ConfigReader&, EncoderHead, DecoderSpec&);
void read_whisper(ConfigReader&, EncoderHead, DecoderSpec&);

}  // namespace trigon
