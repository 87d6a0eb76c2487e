// SPDX-License-Identifier: Apache-2.0
// The pipeline behind the page: from an input to annotated JPEG pictures and figures.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/demo/player.h"
#include "pipelines/apps/live/options.h"
#include "pipelines/apps/live/rate.h"
#include "pipelines/apps/live/trial.h"

namespace live {

struct BytesUnref {
    void operator()(GBytes* bytes) const { g_bytes_unref(bytes); }
};
using BytesPtr = std::unique_ptr<GBytes, BytesUnref>;

// Made, called and ended on the main thread.
class Player {
public:
    struct Callbacks {
        std::function<void()> picture;             // another one is there; on a streaming thread
        std::function<void(std::string)> stopped;  // with an error; main thread
    };
    // Errors: not_found naming a missing element or property value.
    static vartml::Result<std::unique_ptr<Player>> create(const Options& options,
                                                          Callbacks callbacks);
    ~Player();
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    vartml::Result<void> play();

    // The newest picture and its number, from 1; nothing before the first. Any thread.
    BytesPtr picture(uint64_t& number);
    // What the page shows beside the picture, as JSON (docs/elements.md has the figures of
    // `stats`).
    std::string status();

    // One of the models of the command line. Errors: invalid_argument. It takes over when it could
    // be loaded and its outputs decoded; how that goes is told in status(), and the one before
    // plays on meanwhile, and afterwards if it could not.
    vartml::Result<void> set_model(size_t index);
    // Least score of a box. Errors: invalid_argument.
    vartml::Result<void> set_threshold(double score);

private:
    struct Object {
        std::string label;
        float score;
        int x, y, width, height;
        int64_t track;  // -1: none
    };

    Player(const Options& options, Callbacks callbacks);
    vartml::Result<void> build();
    void tried(size_t index, const std::string& error);
    void watch();
    void look_at(GstBuffer* buffer, GstPad* pad);
    void take(GstSample* sample);
    void on_message(GstMessage* message);
    void on_element_message(const GstStructure* s);
    void note_compilation(const GstStructure* s);
    void again();

    const Options options_;
    const std::vector<std::string>& models_ = options_.models;
    const Callbacks callbacks_;
    demo::ElementPtr pipeline_, infer_, decode_;
    guint bus_watch_ = 0;
    bool running_ = false;

    // main thread
    size_t model_ = 0;
    double threshold_ = -1;  // -1: that of the model
    std::string notice_;     // the last thing to tell the user
    int compiled_percent_ = -1;
    std::string device_;
    std::unique_ptr<Trial> trial_;  // of the model that is to take over

    std::mutex mutex_;  // guards all below
    BytesPtr picture_;
    uint64_t pictures_ = 0;
    std::vector<Object> objects_;
    int width_ = 0, height_ = 0;
    Rate rate_;
};

}  // namespace live
