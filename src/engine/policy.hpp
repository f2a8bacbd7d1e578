#pragma once
// What one engine or framework version does, as mechanisms and sourced coefficients. A new
// version is data under data/engines/; a new mechanism is an enumerator, code and a test.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "base/quantity.hpp"
#include "engine/messages.hpp"
#include "model/format.hpp"

namespace trigon {

struct Accelerator;

// How an engine turns its memory fraction into a KV pool.
enum class PoolRule : std::uint8_t {
  none,            // caches are allocated per request (Hugging Face) or for a given context
                   // (llama.cpp)
  total_fraction,  // total * f - everything else (vLLM)
  free_fraction,   // (total - everything else) * f (TensorRT-LLM)
  granted_share,   // (total * f - everything else) * share (TGI)
  static_fraction  // total * f - weights; activations live in the rest (SGLang)
};

enum class WindowAllocator : std::uint8_t {
  full,   // sliding layers keep pages for the whole context
  capped  // sliding layers keep min(window, context)
};

enum class LogitsRows : std::uint8_t { sampled_only, all_tokens };

enum class Launch : std::uint8_t { eager, graphs };

// What a server with a vision tower runs through it at start, to see what is left for caches.
enum class MediaProfile : std::uint8_t {
  none,     // nothing: images take what is free when they come
  prompts,  // as many prompts, each with its limit of images and films, as the token budget allows
  budget    // items of the largest kind, as the encoder's budget allows; their outputs are kept
};

// Graphs: what shares a kernel. Nothing (each operator its own); functions of elements and rows
// among themselves, beside a library's products (compilers); also as the last step of a product.
enum class Fusion : std::uint8_t { none, pointwise, epilogue };

// How tokens reach experts on other ranks. Not at all: each rank of a tensor group has them all
// and sums with the others. DeepEP's kernels: low-latency ones for decoding and normal ones for
// prompts, or one of both always.
enum class ExpertKernels : std::uint8_t { none, deepep, deepep_low_latency, deepep_normal };

enum class Batching : std::uint8_t { continuous, fixed };

// When ggml copies experts that lie in host memory to a card to multiply them there.
enum class ExpertCopies : std::uint8_t {
  never,
  by_batch,  // from 32 tokens of a micro-batch on (llama.cpp)
  by_expert  // from 32 tokens an expert on, on average (ik_llama.cpp)
};

// What a framework's autograd keeps and which intermediates its kernels materialise.
enum class Autograd : std::uint8_t {
  eager,     // one kernel per operator: 32-bit copies in norms, activation and product kept apart
  compiled,  // a compiler fuses norms and activations and recomputes cheap parts
  fused      // hand-written kernels: norm inputs, one gate-up tensor, the product
};

// What eager frameworks keep for the backward pass beyond what every framework does. Each flag is
// a line of their model code; the sheets cite it.
struct EagerRules {
  bool fused_qkv = false;         // values are a view, so the projection's whole output stays alive
  bool expanded_kv = false;       // keys and values are repeated for every query head and kept so
  bool separate_head = false;     // a tied head is loaded as a matrix of its own
  double trained_norm_bytes = 2;  // of an element, beside the 32-bit input of a trained RMSNorm
  // An adapter's own copy of its input, bytes of an element (a cast, a dropped copy and its mask);
  // 0: it reads the tensor that its neighbours read.
  double adapter_input_bytes = 0;
  bool adapter_shared_qkv = false;  // adapters of query, key and value share that copy
  bool adapter_padding = false;     // outputs are kept where not all of q, k, v are adapted
  // Linears of a quantised base keep their input (bitsandbytes before 0.43), and copies of the
  // dequantised matrix exist at once.
  bool quantised_input = false;
  double dequantised_copies = 1;
  bool quantised_head = false;
  bool graph_outlives_step = false;  // ... until the next forward pass has ended
};

// Where a split over cards cuts the model.
enum class Parallelism : std::uint8_t { tensor, layers };

// ggml: what of a model lies where when its matrices are split over the cards by rows.
enum class RowSplit : std::uint8_t {
  never,      // no such mode
  main_card,  // caches, small tensors and experts on the main card
  by_layer    // dealt to the cards with their layers
};

// What selective recomputation drops, by the names of Megatron's --recompute-modules.
struct RecomputeModules {
  bool attention = true;           // core_attn: scores and their softmax
  bool norms = false;              // layernorm: outputs of norms
  bool mlp = false;                // mlp: a dense MLP whole
  bool expert_activation = false;  // moe_act: what experts' activation functions give
  bool experts = false;            // moe: the layer of experts whole
  bool latent_up = false;          // mla_up_proj: expanded queries, keys and values
};

struct EnginePolicy {
  std::string id;       // "vllm"
  std::string library;  // of kernels that it shares with other engines, "ggml"; empty: its own
  std::string version;  // the entry used ("0.11"), may be empty
  bool trains = false, serves = false;
  bool runs_tokens = true;   // language models
  bool runs_graphs = false;  // networks as graphs
  // The engine that takes over the other kind of model under the same name ("TensorRT").
  std::string tokens_engine, items_engine;
  bool tf32_convolutions = false;  // 32-bit convolutions are multiplied in TF32 where that exists
  Fusion fusion = Fusion::epilogue;
  bool channels_first = false;  // images lie as [channels, height, width] in memory

  PoolRule pool = PoolRule::none;
  double memory_fraction = 1.0;          // default of the engine
  double pool_share = 1;                 // of what is free, where the rule has one
  bool pool_tokens_option = false;       // the pool can be limited to a number of tokens
  std::int64_t pool_tokens = 0;          // that limit; 0: none
  std::int64_t block_tokens = 1;         // KV page
  std::int64_t latent_block_tokens = 0;  // of caches of the latent, where the kernel wants others
  // Where recurrent layers stand beside attention, pages of attention are made as large as a
  // state, in whole kernel blocks of this many tokens (vLLM); 0: states lie apart.
  std::int64_t state_page_alignment = 0;
  WindowAllocator windows = WindowAllocator::full;
  LogitsRows logits = LogitsRows::sampled_only;
  std::int64_t logits_bytes_per_value = 4;
  std::int64_t max_batched_tokens = 0;  // token budget of a step; 0: the whole prompt
  std::int64_t max_sequences = 0;       // 0: no limit
  Batching batching = Batching::continuous;
  bool chunked_prefill = false;
  Launch launch = Launch::eager;
  std::vector<std::int64_t> capture_batches;  // decode batches are rounded up to these
  bool captures_most = false;                 // one more graph has the largest batch of all
  Parallelism default_parallelism = Parallelism::tensor;
  bool tensor_parallel = true, pipeline_parallel = true, expert_parallel = false;
  bool context_parallel = false;  // divides sequences over ranks in training
  bool attention_data_parallel =
      false;  // ranks of a tensor group may attend to sequences of their own
  bool context_ring = true, context_all_to_all = false;  // how such ranks share attention
  bool interleaved_stages = false;          // pipelines of several chunks of layers to a rank
  bool gpipe = false, zero_bubble = false;  // other orders of passes than 1F1B
  // ZeRO stages whose states may be divided over parts of the replicas alone.
  std::array<bool, 4> zero_groups{};
  // What training can keep in host memory between uses.
  bool offloads_optimizer = false, offloads_weights = false, offloads_activations = false;
  bool mla_absorbed = true;             // caches the latent, not the expanded heads
  bool graphs_inside_fraction = false;  // CUDA graphs count against the fraction
  bool embedding_on_host = false;       // llama.cpp keeps token embeddings in host memory

  // Bytes beside weights and KV, with their sources in `sheet`.
  Bytes context_overhead{};     // device context and libraries, per rank
  Bytes collective_overhead{};  // communication buffers, per rank when there are several
  Bytes library_overhead{};     // kernels and workspaces loaded as they first run
  Bytes graph_overhead{};       // captured graphs, per rank
  Bytes graph_per_layer{};      // of each captured batch and layer, where that is known
  std::optional<std::int64_t> captured_graphs;  // how many, where it was said
  bool context_inside_fraction = true;          // the device context counts against the fraction
  bool collectives_inside_fraction = true;
  bool checks_free = false;  // refuses to start when its fraction is more than what is free
  Bytes pool_margin{};       // kept out of the pool
  double hidden_copies = 0;  // live activation copies of the hidden state per token
  std::int64_t micro_batch_tokens = 0;  // llama.cpp n_ubatch: tokens a compute buffer is sized for

  // Cards whose driver reports `large_card` or more get other defaults (0: no such rule).
  Bytes large_card{};
  std::int64_t large_card_batched_tokens = 0;
  std::int64_t large_card_sequences = 0;
  std::vector<std::string> large_card_not;  // architectures that the rule leaves out
  // SGLang chooses prefill chunk and largest captured batch by the size of the card (GiB, from),
  // and derives from them what it keeps free: base + a * chunk + b * batch + c * ranks / 8.
  std::vector<double> tier_gib, tier_tokens, tier_graphs, tier_graphs_tp4;
  Bytes reserve_base{}, reserve_per_token{}, reserve_per_graph{}, reserve_per_8_ranks{};
  Bytes reserve_least{}, reserve_least_from{};  // not less than, on cards of at least
  bool derives_fraction() const { return reserve_base > Bytes{} && memory_fraction <= 0; }
  // Or a fraction by tensor-parallel ranks: from so many on. Both only while none is given.
  std::vector<double> fraction_ranks, fraction_values;
  // The fraction that holds for a plan: what was given, or by ranks.
  double fraction(int tensor) const;
  bool card_resolved = false;  // `on_card` has run: what was set since stays

  // Models with a vision tower. Images and films that a prompt may have (0: no limit, -1: none),
  // and the frames that a film is taken to have at most.
  MediaProfile media_profile = MediaProfile::none;
  std::int64_t media_images = 1, media_films = 1, media_frames = 16;
  bool media_takes_images = false;  // films are what images of a prompt leave of the context
  // SGLang gives up a share of its derived fraction for the tower, by layers * width^2.
  bool media_reserve = false;

  std::int64_t vocabulary_padding = 1;  // rows of embedding and head are padded to a multiple
  bool flash_attention = true;          // scores are never materialised
  bool concatenated_cache = false;      // a layer's cache is copied when it grows (Hugging Face)
  bool rotary_table = false;            // cosines and sines of all positions lie on each rank
  bool whole_cache_copied = false;      // and the old ones of all layers live until the step ends
  // Weight-only formats: a matrix that meets many rows is unpacked first.
  double unpacked_bytes = 0;         // a parameter of the largest such matrix
  std::int64_t unpacked_rows = 0;    // 16-bit scratch of so many rows of the widest layer
  bool quantises_head = false;       // formats of single parameters are applied to the head as well
  bool compute_buffer = false;       // ggml: one buffer per device, sized for a micro-batch
  double pipeline_input_copies = 1;  // ggml: of masks and embeddings, with several devices
  bool remainder_last = false;       // layers that do not divide over stages go to the last one
  // Passes of prompts that may be inside a pipeline at once; 0: as many as it has stages.
  std::int64_t pipeline_passes = 0;
  // Kernels that one host thread launches for a layer of a prompt, of quantised and of 16-bit
  // weights, on one device after the other; 0: not counted, no queue holds them up.
  std::int64_t quantised_launches = 0, half_launches = 0;
  // A quantised matrix without integer products is widened to 16 bit first where it meets so many
  // rows; 0: kernels widen it as they multiply.
  std::int64_t widened_rows = 0;
  // Passes of so few tokens gather the matrices of chosen experts instead of sorting tokens.
  std::int64_t gathered_rows = 0;
  bool custom_all_reduce = true;  // sums inside a node by kernels of its own while they are small
  // Where the experts of a tensor group lie on several nodes.
  ExpertKernels expert_kernels_across_nodes = ExpertKernels::none;
  bool expert_loop = false;        // larger ones multiply expert after expert, quantised ones fused
  bool row_products = false;       // matrix-vector kernels: each row reads the quantised matrix
  bool integer_products = false;   // GGUF weights meet activations in 8 bit on integer units
  std::int64_t lookup_rows = 1;    // rows of a product that one look-up of a codebook serves
  bool own_products = false;       // products in 16 and 8 bit by kernels of its own, no library's
  bool half_accumulation = false;  // 16-bit products are summed in 16 bit
  // Modules of quantised matrices that wait for the device before they return, as "int8": the host
  // launches the next kernel only then. Launches beyond that of a plain matrix, one each format.
  std::vector<std::string> waiting_formats;
  std::vector<double> waiting_launches;
  // Extra launches of a module of this format that waits; nothing where it does not wait.
  std::optional<double> waits(Format weights) const;
  // Bytes a score costs where scores are materialised: written, put through softmax, read.
  double score_bytes = 20;
  double score_passes = 0;  // the same as how often a score is moved, whatever its format
  // ggml's graphs, as they decide what is alive at once. Masks in 32 bit, converted for flash
  // attention; one operator for a norm and its weight, and for both halves of a gated layer, whose
  // results never take the place of an operand; keys and values of all heads expanded before the
  // first is used (MLA).
  bool masks_converted = true, fused_norms = false, fused_gates = false, heads_together = true;
  ExpertCopies expert_copies = ExpertCopies::never;
  bool host_layers = false;  // layers and experts may be left in host memory (-ngl, -ncmoe)
  bool head_first = false;   // ... and the head is the last of what is left (-ngl 1 is the head)
  bool card_shares = false;  // cards may take uneven shares, and one may take all (-ts, -sm none)
  // What the CPU's kernels copy into a layout of their own: "q4_k@avx2". Where a card has pinned
  // host memory that is used instead, unless `repacks_beside_cards`.
  std::vector<std::string> repacked_formats;
  bool repacks_beside_cards = false;
  RowSplit row_split = RowSplit::never;
  bool rounds_by_type = false;  // ... in blocks of rows that depend on the type of the matrix
  // ggml on MLA: keys and values may be kept both, mode 1 without flash attention transposes a
  // copy of the latent, 2 and 3 expand it under flash attention (ik_llama.cpp's -mla).
  bool latent_values_cached = false;
  int latent_mode = 3;
  bool fused_experts = false;    // one operator for gate and up projections of experts
  bool latent_expanded = false;  // flash attention on MLA expands keys and values of the context
  Bytes attention_chunk{};       // of that expansion in 32 bit, at once; 0: all of it

  // Training.
  Autograd autograd = Autograd::eager;
  double loss_bytes_per_logit = 0;  // live at the loss: logits, their copies and gradient
  double loss_traffic_bytes = 0;    // read and written for each logit, forward and backward
  // The forward pass of training makes caches of keys and values (use_cache), which live until it
  // returns; the caller holds all outputs through the backward pass.
  bool caches_in_training = false, outputs_held = false;
  double fused_loss_bytes_per_logit = 0;  // the same of its fused loss, which is asked for
  std::int64_t loss_chunks = 1;           // the loss is computed on this many slices
  bool gradients_persist = false;   // gradient buffers live through forward (Megatron, DeepSpeed)
  bool dropout_masks = false;       // models without gates train with dropout: masks are kept
  bool dropout_stated = false;      // whatever the model, dropout_masks says so
  double optimizer_step_bytes = 0;  // temporaries of the optimizer step, per local parameter
  double gathered_layers = 2;       // layers whole at once under ZeRO-3 / FSDP
  EagerRules eager;
  double gathered_parameters = 0;  // or so many parameters (DeepSpeed's max_live_parameters)
  bool gathered_ends = false;      // FSDP's root unit keeps embedding and head whole
  // FSDP: micro-batches but the last leave whole gradients on every rank; a unit of frozen and
  // trained weights has gradients as if all of it trained.
  bool unsharded_accumulation = false, mixed_units = false;
  double step_parameters = 0;          // that one step of the optimizer takes at once; 0: all
  bool data_parallel_buckets = false;  // DDP reduces copies of the gradients
  double reduce_bucket = 0;  // elements of the buffers that gradients are reduced from, all of them
  double fragmentation = 0;  // allocator: share of activations reserved but unused
  // Selective recomputation by operator: every other product and all that is no product or
  // attention (torchtitan's policy).
  bool selective_by_operator = false;
  // What tensor ranks exchange runs beside products: in the backward pass beside the gradients of
  // weights, in the forward pass (of ranks that divide sequences) beside the products it feeds.
  bool tensor_backward_overlaps = false, tensor_forward_overlaps = false;
  double flash_version = 0;         // 2: FlashAttention-2 on cards that have newer; 0: the newest
  double flash_capability_min = 0;  // compute capability that its flash attention needs
  RecomputeModules selective;       // what selective recomputation covers
  // Workspaces that matrix libraries take from the framework's allocator: cuBLAS one for each host
  // thread that multiplies, larger on Hopper and where results must repeat; own kernels one more
  // (larger from Hopper on) and one for each stream that grouped experts run on.
  std::int64_t blas_threads = 0;
  Bytes blas_workspace{}, blas_workspace_hopper{}, blas_workspace_deterministic{};
  Bytes kernel_workspace{}, kernel_workspace_hopper{};
  std::int64_t expert_streams = 0;
  bool deterministic = false;   // results repeat bit by bit
  bool grouped_experts = true;  // all experts of a rank in one product
  // Ranks of the tensor group that each attend to sequences of their own and hold all but the
  // routed experts whole; budgets of tokens and sequences are those of one of them. 1: the group
  // divides heads.
  std::int32_t attention_ranks = 1;
  // 8-bit arithmetic keeps the weights of its products as 8-bit copies, before Blackwell with their
  // transposes; or the weights themselves are kept so.
  bool eight_bit_copies = false, eight_bit_weights = false;
  bool trains_drafts = false;          // layers for multi-token prediction train with the model
  bool ends_stay_gathered = false;     // ZeRO-3: what lies outside the layers is never dropped
  bool attention_output_copy = false;  // flash attention's output is kept in a second layout where
                                       // cuDNN's kernel does not serve (before Hopper; repeatable
                                       // results after it)
  std::int64_t default_zero = 0;       // ZeRO stage without further flags; FSDP is 3
  std::string default_recipe;          // name of a TrainRecipe: "mixed_16bit" ...

  std::vector<std::string> vendors;  // accelerators it runs on
  bool processors = false;           // it also runs on processors, whoever made them
  double nvidia_capability_min = 0;  // compute capability its releases need; 0: not stated
  // Whether its vendor is one that the engine is made for; of a processor, whether it runs on any.
  bool made_for(const Accelerator& card) const;
  // And whether its capability is enough.
  bool runs_on(const Accelerator& card) const;
  std::vector<Message> assumptions;  // what `find` took for granted (a version, a date)
  const FactSheet* sheet = nullptr;

  // With the defaults that depend on the card filled in; unchanged when they are already.
  EnginePolicy on_card(Bytes reported, std::string_view architecture = {}) const;
  // Bytes the engine keeps out of its pool where it derives its fraction (SGLang).
  Bytes reserve(int tensor, int pipeline, Bytes card) const;
  // "engine/vllm#key": the id under which a coefficient is cited.
  std::string fact_id(const char* key) const { return "engine/" + id + "#" + key; }
};

}  // namespace trigon
