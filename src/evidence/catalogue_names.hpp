#pragma once
// The names in rows as the catalogues know them, and the predictor that asks `estimate`.

#include "decide/catalogues.hpp"
#include "evidence/validate.hpp"

namespace trigon {

// Both must not outlive the catalogues. The names remember the models they built and belong to one
// thread; the predictor may be called from several.
RowNames row_names(const Catalogues& all);
// The same, and every row of the evidence is predicted with coefficients that were fitted without
// its fold, so that what comes out are errors of unseen rows.
RowNames row_names_unseen(const Catalogues& all);
Predictor catalogue_predictor(const Catalogues& all);
// Coefficients without each fold of the evidence; empty when none are among the facts.
std::vector<Calibration> unseen_calibrations(const Catalogues& all);
// The same for operators and collectives, by the folds of their shapes.
std::vector<Calibration> unseen_operators(const Catalogues& all);

}  // namespace trigon
