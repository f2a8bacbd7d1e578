#pragma once
// Predictions held against measurements. Every row is predicted from its configuration alone, or
// refused with a reason; what comes out does not depend on the number of threads.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evidence/case.hpp"
#include "evidence/comparisons.hpp"
#include "evidence/statistics.hpp"

namespace trigon {

// Answers a question on a cluster; `tuned`: empty plan columns mean the best legal plan.
// Called from several threads at once.
using Predictor =
    std::function<Result<EstimateAnswer>(const Question&, const Cluster&, bool tuned)>;

struct ValidateOptions {
  std::vector<std::string> group_by;  // columns; empty: the schema's own
  int threads = 0;                    // 0: as many as the machine has
  // By fold: coefficients fitted without the rows of that fold. Empty: those of the catalogues.
  std::vector<Calibration> unseen;
};

struct ValidateGroup {
  std::string group;
  std::int64_t rows = 0, in_scope = 0, predicted = 0, refused = 0;
  ErrorStatistics errors;
  // Of the predicted rows that the evidence does not doubt: whose column `trust` is empty.
  std::int64_t trusted = 0;
  std::optional<double> trusted_median;
};
// A group of at least so many trusted rows should have a smaller median error than this.
constexpr std::int64_t kFewestTrusted = 5;
constexpr double kMostTrusted = 0.2;
bool above_trusted_limit(const ValidateGroup& g);

struct RefusalCount {
  RefusalReason reason;
  std::int64_t rows = 0;
};

// What kind of model a row is about: limits hold for each apart.
enum class ModelKind : std::uint8_t { language, encoder, network, count_ };
constexpr std::size_t kModelKinds = static_cast<std::size_t>(ModelKind::count_);
const char* model_kind_name(ModelKind k);  // "language"

struct RowOutcome {
  Schema schema = Schema::train;
  ModelKind kind = ModelKind::language;
  std::string id, group, where;
  bool trusted = true;  // the column `trust` is empty
  double measured = 0;  // base units, 0 for refused rows
  std::optional<Estimate<double>> predicted;
  std::optional<Refusal> refusal;
  std::optional<Error> error;  // why the prediction failed, when it did
  std::vector<Assumption> assumptions;
};

// The rows of one kind of model.
struct KindFigures {
  ValidateGroup overall;
  std::optional<double> median_of_group_medians;
};

struct ValidateAnswer {
  std::array<KindFigures, kModelKinds> kinds;
  std::vector<ValidateGroup> groups;  // sorted by name, `other` last
  ValidateGroup overall;
  std::optional<double> median_of_group_medians;
  std::vector<RefusalCount> refusals;  // most rows first
  std::vector<RowOutcome> rows;        // in the order of the files
  std::vector<PlanChoice> choices;     // by source
  std::vector<ScalingStep> scaling;    // fewest cards first
};

// Groups with fewer rows merge into one of this name.
constexpr std::int64_t kSmallGroup = 10;
constexpr const char* kOtherGroup = "other";

Result<ValidateAnswer> validate(const std::vector<CsvTable>& tables, const RowNames& names,
                                const Predictor& predict, const ValidateOptions& options);

// The prediction of one case: each card that its name may mean, with a range that spans them.
Result<Estimate<double>> predict_case(const Case& c, const Predictor& predict);

}  // namespace trigon
