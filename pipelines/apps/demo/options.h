// SPDX-License-Identifier: Apache-2.0
// The command line of vartml-demo.
#pragma once
#include <span>
#include <string>

#include <vartml/result.h>

namespace demo {

enum class Input { scene, video, camera };

struct Options {
    Input input = Input::scene;
    std::string source;    // file of --video, device of --camera
    std::string backdrop;  // picture or clip behind the scene's codes, or ""
    std::string model;     // "" = the QR-code finder that comes with the project
    std::string labels, decoder;
    std::string out = "out";
    double seconds = 0;  // 0 = 10 for the scene, else until the end
    bool help = false;
};

// Errors: invalid_argument naming the option.
vartml::Result<Options> parse_options(std::span<char* const> arguments);

const char* usage();

// What vartmldecode calls the decoder family of that name, as in yolo-v8 of yolov8. Errors:
// invalid_argument naming those that there are.
vartml::Result<std::string> nick_of_decoder(const std::string& name);

}  // namespace demo
