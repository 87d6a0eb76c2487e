// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/own_scene.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "pipelines/apps/demo/player.h"

namespace demo {

using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;

std::string own_model() {
    const char* file = std::getenv("VARTML_DEMO_MODEL");
    return file && *file ? file : VARTML_DEMO_MODEL_INSTALLED;
}

Result<void> make_folder(const std::string& folder) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
        return Error{ErrorCode::io,
                     folder + ": " + failure.message() + "; give another with --out"};
    return {};
}

Result<Recording> record_scene(const std::string& backdrop, double seconds,
                               const std::string& file) {
    const std::string folder = std::filesystem::path(file).parent_path();
    if (auto made = make_folder(folder); !made) return made.error();
    Picture behind;
    if (!backdrop.empty()) {
        auto picture = load_picture(backdrop, Scene::kBackdropWidth, Scene::kBackdropHeight, 2);
        if (!picture) return picture.error();
        behind = std::move(*picture);
    }
    auto scene = Scene::create(std::move(behind));
    if (!scene) return scene.error();
    const auto frames = static_cast<unsigned>(seconds * Scene::kFramesPerSecond + 0.5);
    std::fprintf(stderr, "making a scene of %u frames: %s\n", frames, file.c_str());
    return record(*scene, frames, file);
}

}  // namespace demo
