// SPDX-License-Identifier: Apache-2.0
// Which of the results on a frame becomes the picture.
#pragma once
#include <gst/gst.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/preprocess.h>

#include "gst/metadata/inference.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"

namespace vartml::gst {

// The tensors of one inference of a whole frame.
struct PictureResult {
    std::shared_ptr<const InferenceRecord> record;  // else `outputs`
    guint64 id = 0;                                 // of a record's result; 0: it has none
    std::vector<TensorInfo> outputs;
    std::vector<GstBuffer*> data;  // references
    Affine to_frame;

    PictureResult() = default;
    PictureResult(const PictureResult&) = delete;
    PictureResult& operator=(const PictureResult&) = delete;
    ~PictureResult() {
        for (GstBuffer* buffer : data) gst_buffer_unref(buffer);
    }
    const std::vector<TensorInfo>& described() const { return record ? record->outputs : outputs; }
};

// Takes results off frames, and keeps the newest for frames without one: of the model whose output
// is named, else of the vartmlinfer whose pictures these are, else of the last before this element
// that gives any; tensors of other elements where no vartmlinfer gives what is asked for.
// Thread-safety: none.
class PictureSource {
public:
    // Name or id of the tensor that is wanted; "": any. What is kept of another model is forgotten.
    void want(std::string output);
    // Frames are so much larger from now on, and so is where the kept result lies on them.
    void scale(const Growth& growth);
    void forget() { result_.reset(); }
    // nullptr before the first.
    const PictureResult* result() const { return result_.get(); }

    struct Taken {
        bool has_record = false;  // the frame bears a record of a vartmlinfer
        bool has_result = false;  // and a result
        bool fresh = false;       // that the frame before did not bear
    };
    // Nothing after filling `failure`.
    std::optional<Taken> take(GstBuffer* buffer, Failure& failure);

private:
    struct Others;

    bool has_wanted(const InferenceRecord* record) const;
    std::string_view known_source(GstBuffer* buffer) const;
    Others others_on(GstBuffer* buffer) const;
    bool take_inference(GstBuffer* buffer, Taken& taken, bool& take_others, Failure& failure);
    bool take_tensors(GstBuffer* buffer, Failure& failure);

    std::string output_;
    std::unique_ptr<PictureResult> result_;
};

}  // namespace vartml::gst
