// SPDX-License-Identifier: Apache-2.0
// The pipeline behind the page: from an input to annotated JPEG pictures and figures.
#pragma once
#include <gst/gst.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/demo/player.h"
#include "pipelines/apps/live/history.h"
#include "pipelines/apps/live/options.h"
#include "pipelines/apps/live/rate.h"
#include "pipelines/apps/live/sightings.h"
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
    // Least score of a box; nothing: the model's own. Errors: invalid_argument.
    vartml::Result<void> set_threshold(std::optional<double> score);

private:
    using Time = std::chrono::steady_clock::time_point;
    // What to tell the user; the page shows each once.
    struct Notice {
        unsigned number = 0;  // from 1
        std::string text;
        bool warns = false;
        Time since;
    };
    // Since the model or the threshold was changed.
    struct Change {
        std::string what = "the start";
        double frames = 0, inferences = 0, copies = 0, copied_bytes = 0;  // of `stats` then
    };

    Player(const Options& options, Callbacks callbacks);
    vartml::Result<void> build();
    void use_model(size_t index);
    void tried(size_t index, const std::string& error);
    void watch();
    void watch_latency(const char* pad, bool comes);
    void look_at(GstBuffer* buffer, GstPad* pad);
    void comes(GstClockTime pts);
    void leaves(GstClockTime pts);
    void take(GstSample* sample);
    void on_message(GstMessage* message);
    void on_element_message(const GstStructure* s);
    void note_compilation(const GstStructure* s);
    void notice(std::string text, bool warns = false);
    void changed(std::string what);
    std::string launch_line() const;
    void again();

    const Options options_;
    const std::vector<std::string>& models_ = options_.models;
    const Callbacks callbacks_;
    demo::ElementPtr pipeline_, infer_, decode_;
    guint bus_watch_ = 0;
    bool running_ = false;

    // main thread
    size_t model_ = 0;
    std::optional<double> threshold_;  // nothing: that of the model
    double own_threshold_ = -1;        // that of the model; -1: not known yet
    Notice notice_;
    Change change_;
    int compiled_percent_ = -1;
    std::string device_;
    std::unique_ptr<Trial> trial_;  // of the model that is to take over

    std::mutex mutex_;  // guards all below
    BytesPtr picture_;
    uint64_t pictures_ = 0;
    Sightings sightings_;
    int width_ = 0, height_ = 0;
    Rate rate_;
    History history_;
    std::deque<std::pair<GstClockTime, Time>> inside_;  // frames in vartmlinfer, by their PTS
};

}  // namespace live
