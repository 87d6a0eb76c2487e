// SPDX-License-Identifier: Apache-2.0
// What stands before an element in its pipeline, and what that means for it: elements that read
// metadata say once why none reaches them, and which labels there are.
#pragma once
#include <gst/gst.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vartml::gst {

struct ObjectUnref {
    void operator()(gpointer object) const { gst_object_unref(object); }
};
using ElementRef = std::unique_ptr<GstElement, ObjectUnref>;

// The elements whose frames reach `element`, the nearest first, through bins, queues and tees. Any
// thread, with no lock held.
std::vector<ElementRef> elements_before(GstElement* element);

// Whether the label of a tracked object is a part of who it is. Trackers behind each other count
// their tracks from 1 each, so that a track is one of its label; only where a vartmltrack before
// the element has per-class=no, a track may change its label and is known without it. Streaming
// thread.
class TrackLabels {
public:
    // Where a stream begins: the elements are looked at anew.
    void restart() { kept_.reset(); }
    bool are_kept(GstElement* element);

private:
    std::optional<bool> kept_;
};

// Tells after so many frames that none of them had anything for the element. Streaming thread.
class IdleNotice {
public:
    static constexpr unsigned patience = 30;

    struct Role {
        const char* id;              // of the message: "ovl-idle"
        const char* doing;           // "draw": "Could not draw: …"
        const char* lacks;           // "detections"
        bool needs_decoder;          // reads what vartmldecode makes, not tensors
        bool needs_tracker = false;  // reads what vartmltrack makes
    };
    void restart() { *this = {}; }
    // Nothing more is told: what a frame has need not be looked for.
    bool is_over() const { return over_; }
    // To be called for each frame. `has_work`: it has something that the element works on;
    // `has_record`: it has a record of vartmlinfer. Posts one WARNING with the likely cause, or
    // none where all is in order and the model sees nothing.
    void frame(GstElement* element, const Role& role, bool has_work, bool has_record);

private:
    unsigned frames_ = 0;
    bool over_ = false, had_records_ = false;
};

// Compares a property's list of labels with those of the models before an element, which are known
// once they have decoded a frame. Streaming thread.
class LabelCheck {
public:
    void restart() { *this = {}; }
    // To be called for each frame behind an inference until it has told. Posts one WARNING where no
    // model knows a label; none where no vartmldecode stands before.
    void frame(GstElement* element, const char* property, const std::vector<std::string>& labels);

private:
    bool pending_ = true;
    unsigned asked_ = 0;
};

}  // namespace vartml::gst
