// SPDX-License-Identifier: Apache-2.0
// First half of loading: from the property `model` to an opened description. Failures carry the ids
// of the element.
#pragma once
#include <string>

#include <vartml/postprocess.h>

#include "gst/infer/instance.h"

namespace vartml::gst::infer {

// Checks that the file is there, compiles an .onnx, opens the description into `instance`. False:
// `failure` is filled.
bool open_description(const Settings& settings, const LoadProgress& progress, Instance& instance,
                      Failure& failure);

// The sidecar of the model.
bool find_sidecar(const Settings& settings, const Instance& instance, vartml::ModelInfo& info,
                  Failure& failure);

// Lays the property `preprocess` over what the sidecar says of the picture input.
bool overlay_preprocess(const Settings& settings, const std::string& picture_input,
                        vartml::ModelInfo& info, Failure& failure);

// What the properties say about create_runner.
bool runner_options(const Settings& settings, const vartml::ModelDescription& description,
                    unsigned batch, RunnerOptions& options, Failure& failure);

// Runs in flight that the frames in flight need.
unsigned concurrent_runs(const Settings& settings, unsigned batch);

// What a model is called in records, traces and on the screen.

// The name that is compiled in, unless it says nothing (model, best, end2end …): then that of the
// file, or of the nearest folder that says something. `path` is what the user gave.
std::string model_name(const std::string& compiled_in, const std::string& path);

}  // namespace vartml::gst::infer
