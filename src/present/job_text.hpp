#pragma once
// The job, a plan and its metrics in words and in JSON: what every verb's answer shares.

#include <string>
#include <vector>

#include "decide/verbs.hpp"
#include "present/json.hpp"
#include "present/screen.hpp"
#include "present/words.hpp"

namespace trigon {

// What was asked, as the program understood it.
struct Asked {
  std::string command;
  std::string model;                  // catalogue name or path; empty without one
  std::vector<std::string> hardware;  // as written
  std::string engine;                 // as asked; empty: the default of the job
  PlanRequest plan;
  Objective objective;
  // Flags, environment and configuration that were given: canonical name, text, where from.
  struct Given {
    std::string name, text, origin;
  };
  std::vector<Given> given;
  std::string data_version;
  std::vector<Message> warnings;
};

// "images": what one item of the model is called, in the plural.
std::string items_in_words(const Item& item, Language language);
// The unit of a metric as shown: "s", "tokens/s", or "images/s" where a request is an image.
std::string unit_in_words(Metric m, const std::optional<Item>& item, Language language);
// The label of a metric for this kind of model: a request of one is an item of another.
std::string metric_label(Metric m, const std::optional<Item>& item, Language language);
// "time to first token": the message that is named like the metric's JSON key.
std::string metric_label(Metric m, Language language);
PresentMessage memory_term_label(MemoryTerm t);
std::string_view memory_term_json(MemoryTerm t);
std::string_view basis_label(Basis b, Language language);

// "serving llama-3.1-8b: 20 /s requests, 1,000 input and 300 output tokens".
std::string job_in_words(const Job& job, const std::string& model, Language language);
bool is_training(const Job& job);
// "8x h100-sxm-80gb": the cluster as written, or count and id.
std::string hardware_in_words(const Cluster& c);
// "vllm 0.11, tp8".
std::string plan_in_words(const PlanReport& r);
// "time to first token 0.21 s (0.18 to 0.25)".
std::string metric_in_words(const PlanReport& r, Metric m, Language language);
// The metrics that decide this kind of job, those the report has.
std::vector<Metric> deciding_metrics(const Job& job);
// The price line: rent per hour, purchase or total, whichever is known.
std::string cost_in_words(const PlanReport& r, Payment payment, Language language);

const char* method_name(TuneMethod m);  // "lora", as in flags
JsonNode job_json(const Job& job);
JsonNode plan_json(const Plan& p);
JsonNode report_json(const PlanReport& r);
JsonNode message_json(const Message& m);
// {schema_version, command, inputs, results, warnings, data_version}.
JsonNode envelope(const Asked& asked, const Job* job, const std::vector<Assumption>& assumptions,
                  JsonNode results, const std::vector<Message>& warnings = {});

}  // namespace trigon
