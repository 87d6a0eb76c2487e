// SPDX-License-Identifier: Apache-2.0
// The decoders of an element: one per model that its frames bring, made at the first frame.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gst/gst.h>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "gst/decode/results.h"
#include "gst/metadata/inference.h"
#include "gst/support/error.h"

namespace vartml::gst {

// What the user set, beside the sidecar of a model.
struct DecodeSettings {
    vartml::DecodeOptions options;
    vartml::ModelInfo model_info;     // what the model's own sidecar leaves open
    std::vector<std::string> labels;  // of a file of their own; win over the sidecar's
    std::string label_file;
};

// Where tensors come from: a record, or the outputs that upstream's metadata describe and the size
// of the picture.
struct TensorSource {
    std::shared_ptr<const InferenceRecord> record;
    std::vector<vartml::TensorInfo> outputs;  // without record
    uint32_t width = 0, height = 0;
    bool operator==(const TensorSource&) const = default;
};

// 0 for an empty text.
inline GQuark quark_of(const std::string& text) {
    return text.empty() ? 0 : g_quark_from_string(text.c_str());
}

struct CachedDecoder {
    TensorSource source;
    vartml::Decoder decoder;
    LabelQuarks quarks;
    GQuark skeleton;  // of keypoints; 0 = not known
    std::string model;
    double own_threshold;                     // what score-threshold=-1 stands for
    bool doubted = false, suspected = false;  // and said so

    CachedDecoder(TensorSource s, vartml::Decoder d, std::string m, double threshold)
        : source(std::move(s)),
          decoder(std::move(d)),
          quarks(decoder),
          skeleton(quark_of(decoder.skeleton())),
          model(std::move(m)),
          own_threshold(threshold) {}
    CachedDecoder(const CachedDecoder&) = delete;
    CachedDecoder& operator=(const CachedDecoder&) = delete;
};

// Whether a section of the file is of one of its tensors.
bool names_tensor_of(const vartml::ModelInfo& info, const TensorSource& source);

// Thread-safety: none.
class DecoderCache {
public:
    // The decoder of a source, or nullptr when it was not made yet. It lives until the next make()
    // or clear().
    CachedDecoder* find(const TensorSource& source);
    // Makes it. `meant`: the modelinfo-file is of this source, or of another on the frame; a source
    // of others' tensors for which none is meant is refused. A failure has one of the ids dec-*.
    std::variant<CachedDecoder*, Failure> make(TensorSource source, const DecodeSettings& settings,
                                               bool meant);
    // Gives changed thresholds, limits and classes to all. Errors: as Decoder::set_classes.
    vartml::Result<void> apply(const vartml::DecodeOptions& options);
    void clear() { entries_.clear(); }

private:
    std::vector<std::unique_ptr<CachedDecoder>> entries_;  // the last one used comes last
};

// What the last results were decoded to, for the frames that carry one again.

// A result, and where its boxes go.
struct ResultKey {
    guint64 result_id = 0;  // 0: one that never comes again
    vartml::Affine to_frame;
    unsigned width = 0, height = 0;
    bool operator==(const ResultKey&) const = default;
};

// Keeps its memory. Thread-safety: none.
class ResultCache {
public:
    // nullptr where it was not decoded, or too long ago.
    const vartml::Decoded* find(const ResultKey& key) const;
    // Where to decode it to, in the place of the oldest; keep() says that it worked.
    vartml::Decoded& next();
    void keep(const ResultKey& key) { slots_[next_++ % slots_.size()].key = key; }
    void clear();

private:
    struct Slot {
        ResultKey key;
        vartml::Decoded decoded;
    };
    std::array<Slot, 4> slots_;  // ours: elements that infer, one after another
    size_t next_ = 0;
};

}  // namespace vartml::gst
