#pragma once
// Each verb's answer as text and as JSON.

#include "decide/what_if.hpp"
#include "present/job_text.hpp"

namespace trigon {

std::string estimate_text(const EstimateAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode estimate_json(const EstimateAnswer& a, const Asked& asked);

// The question as it is, and each case with its factors.
std::string what_if_text(const WhatIfAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode what_if_json(const WhatIfAnswer& a, const Asked& asked);

// One row: a verdict with its memory. Several: every card marked fits / tight / no.
std::string fit_text(const FitAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode fit_json(const FitAnswer& a, const Asked& asked);
std::string model_fit_text(const std::vector<ModelFitRow>& rows, const Asked& asked,
                           const TextStyle& style);
JsonNode model_fit_json(const std::vector<ModelFitRow>& rows, const Asked& asked);

std::string recommend_text(const RecommendAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode recommend_json(const RecommendAnswer& a, const Asked& asked);

std::string plan_text(const PlanAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode plan_answer_json(const PlanAnswer& a, const Asked& asked);

std::string compare_text(const CompareAnswer& a, const Asked& asked, const TextStyle& style);
JsonNode compare_json(const CompareAnswer& a, const Asked& asked);

// Whether the answer is yes: the exit status of the program follows it.
bool is_yes(const EstimateAnswer& a);
bool is_yes(const WhatIfAnswer& a);  // as it is: a case is a thought
bool is_yes(const FitAnswer& a);
bool is_yes(const std::vector<ModelFitRow>& rows);
bool is_yes(const RecommendAnswer& a);
bool is_yes(const PlanAnswer& a);
bool is_yes(const CompareAnswer& a);

}  // namespace trigon
