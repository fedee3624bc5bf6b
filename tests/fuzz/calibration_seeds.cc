// SPDX-License-Identifier: Apache-2.0
#include "fuzz/seed_model.h"
#include "fuzz/seeds.h"
#include "support/some_calibration.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  const auto model = seed_model();
  const auto& hparams = model->impl().weights->hparams();
  calibrated((folder / "whole").string(), *model);
  MemorySink empty;
  engine::write_calibration(empty, {}, identity_of(*model));
  write_seed(folder / "empty", {reinterpret_cast<const char*>(empty.bytes().data()), empty.bytes().size()});
  auto short_layer = some_calibration(hparams);
  auto facts = short_layer.layers.front().facts();
  facts.at("predicted scores").pop_back();
  short_layer.layers.front() = policy::LayerCalibration(facts);
  auto without_queries = some_calibration(hparams);
  facts.erase("query statistics");
  without_queries.layers.back() = policy::LayerCalibration(facts);
  MemorySink without;
  engine::write_calibration(without, without_queries, identity_of(*model));
  write_seed(folder / "without", {reinterpret_cast<const char*>(without.bytes().data()), without.bytes().size()});
  MemorySink shorter;
  engine::write_calibration(shorter, short_layer, identity_of(*model));
  write_seed(folder / "short", {reinterpret_cast<const char*>(shorter.bytes().data()), shorter.bytes().size()});
}
