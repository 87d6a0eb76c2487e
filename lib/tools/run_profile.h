// SPDX-License-Identifier: Apache-2.0
// What `vartml run` records of inferences, and the files that it makes of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/collector.h"
#include "lib/tools/run_measure.h"
#include "lib/tools/run_options.h"
#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

namespace vartml::tools {

// What the model says of recording it.
struct ProfileModel {
    std::string path;
    profiling::Descriptor descriptor;
    std::array<uint8_t, 16> descriptor_id{};
    unsigned level = 0;  // at which samples are recorded
};

// Errors: those of reading a model; invalid_argument for a level that it was not compiled for.
Result<ProfileModel> open_profile_model(const std::string& path, const ProfileOptions& options);

// The collector of one activation.
std::shared_ptr<profiling::Collector> make_collector(const ProfileModel& model,
                                                     const ProfileOptions& options,
                                                     unsigned activation);

// Waits for the captures of all activations, writes the files that are asked for, and fills what
// `m` says of the device: figures, reasons and verdict. Errors: io; not_found when nothing was
// recorded.
Result<void> finish_profile(const ProfileModel& model, const RunOptions& o,
                            std::vector<Activation>& activations, RunMeasurement& m);

// Why a run without recording has no figures of the device, and which option gives them.
void explain_no_profile(const vart::Runner& runner, RunMeasurement& m);

}  // namespace vartml::tools
