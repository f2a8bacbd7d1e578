#pragma once
// What a question about a job needs: facts, the model, the job as asked.

#include <memory>

#include "call.hpp"
#include "decide/catalogues.hpp"
#include "question.hpp"
#include "verbs.hpp"

namespace trigon {

struct Session {
  std::unique_ptr<const Catalogues> all;
  std::unique_ptr<const Model> model;  // null without one
  Asking asking;
  Asked asked;
  Question question;
};

// The embedded facts, with those of --data in place of their namesakes.
Result<std::unique_ptr<const Catalogues>> load_catalogues(const Call& call);
// Facts, settings and, unless `model` is empty, the model of this name or path.
Result<Session> open_session(Call& call, const std::string& model);
// The hardware of a text, with the host's memory and disk.
Result<Cluster> hardware_of(const Session& s, const std::string& text, const std::string& where);
// As hardware_of, but a name of several cards gives each of them.
Result<std::vector<Cluster>> candidates_of(const Session& s, const std::string& text,
                                           const std::string& where);
// "2026-10-19+1a2b3c4d": the newest date of any fact and a hash of all.
std::string data_version(const FactStore& facts);

}  // namespace trigon
