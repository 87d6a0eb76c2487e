// SPDX-License-Identifier: Apache-2.0
// The command line of vartml-live.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace live {

enum class Input : uint8_t { scene, video, camera };

struct Options {
    Input input = Input::scene;
    std::string source;               // file of --video, device of --camera
    std::vector<std::string> models;  // the first is run; the page switches between them
    std::vector<std::string> labels;  // none, one file for all models, or a file of each
    std::string decoder;
    std::string out = "out";  // where the scene is kept
    std::string bind = "127.0.0.1";
    uint16_t port = 8090;  // 0 = any that is free
    std::string token;     // "" = none on the loopback interface, else a random one
};

// Of a model, by its number; "" = those that it has itself.
std::string labels_of(const Options& options, size_t model);

// Reads the command line into `options`. Returns -1 to go on, else the exit status after help (0)
// or a sentence on standard error (2).
int parse_options(int argc, char** argv, Options& options);

}  // namespace live
