// SPDX-License-Identifier: Apache-2.0
// A model beside the pipeline that plays: one test picture through model and decoder, so that a
// model that cannot take over is known before it does.
#pragma once
#include <gst/gst.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <vartml/result.h>

#include "pipelines/apps/demo/player.h"

namespace live {

// Made and ended on the main thread, whose loop tells how it goes.
class Trial {
public:
    struct Callbacks {
        std::function<void(const GstStructure*)> element;  // an element's message, on the way
        std::function<void(std::string)> ended;  // once; with a sentence, "" where the model fits
    };
    struct Model {
        std::string path, decoder, labels;
        int width, height;  // of the pictures that it will get
    };
    // Errors: not_found naming a missing element.
    static vartml::Result<std::unique_ptr<Trial>> start(const Model& model, Callbacks callbacks);
    // Also while the model is compiled, which ends it.
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

private:
    Trial(demo::ElementPtr pipeline, Callbacks callbacks);
    void on_message(GstMessage* message);

    // Pictures go on while the model is loaded, which another thread does.
    struct Beginning {
        demo::ElementPtr pipeline;
        std::mutex mutex;  // held while it is set to play
        bool unwanted = false;
    };

    Callbacks callbacks_;
    std::shared_ptr<Beginning> beginning_;
    guint bus_watch_ = 0;
};

// What the user said of all models, as properties of a vartmldecode.
void set_decoder(GstElement* decode, const std::string& decoder, const std::string& labels);

}  // namespace live
