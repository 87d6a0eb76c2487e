// SPDX-License-Identifier: Apache-2.0
// What decoder families share: the request they are made from, the checks of counts, and the
// candidates they give.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/postprocess.h>

#include "lib/vision/tensor_access.h"

namespace vartml::vision {

// What a decoder is made from.
struct HeadRequest {
    const ModelInfo& info;  // labels included, also those that the user gave in a file of their own
    std::span<const TensorInfo> outputs;
    uint32_t width, height;  // of the model's picture input
    DecodeFault* fault;      // filled with an error; may be null
};

// The number of classes that labels or sidecar promise.
std::optional<unsigned> promised_classes(const ModelInfo& info);
// Where it came from, for messages.
std::string source_of(const ModelInfo& info);
// The tensor id that the sidecar gives an output, else its name.
std::string_view tensor_id(const HeadRequest& request, const TensorInfo& output);
// The output with this role in the sidecar, if one has it.
const TensorInfo* output_with_role(const HeadRequest& request, std::string_view role);
// The output with the role in the sidecar, else the only one of those that `fits` whose id or name
// has one of the `hints` in it, else the only one that fits. Null when there is none or more than
// one.
const TensorInfo* find_output(const HeadRequest& request, std::string_view role,
                              std::span<const std::string_view> hints,
                              bool (*fits)(const TensorInfo&));
// dec-role: no single output is the `role`, which has the shape given. The way out is to name one,
// where there are several and any of them can be it.
Error role_error(const HeadRequest& request, const std::string& role, const std::string& shape,
                 bool has_candidates = true);
// "output [1,3549,85], other [1,10]"
std::string outputs_text(std::span<const TensorInfo> outputs);

// bad_model with the stable id of the elements' documentation; fills request.fault.
Error head_error(const HeadRequest& request, std::string_view id, const std::string& sentence,
                 const std::string& found, const std::string& expected, const std::string& fix);

// The count check of classes: `classes` of the tensor against labels and sidecar. Errors:
// dec-classes.
Result<void> check_classes(const HeadRequest& request, std::string_view tensor, size_t classes);

// bad_model: a value names a class that labels or sidecar do not have, or none at all.
Error class_error(std::string_view tensor, size_t row, double class_value,
                  std::optional<unsigned> promised);
// How many classes the tensor itself may have, offset included, where labels or sidecar say so.
std::optional<unsigned> tensor_classes(const ModelInfo& info);

// A grid of positions: levels in the order of the strides, rows from the top, `per_cell` positions
// side by side.
struct Level {
    int stride = 0;
    uint32_t width = 0, height = 0;  // cells
    size_t first = 0;                // position
};
struct Grid {
    std::vector<Level> levels;
    size_t positions = 0;
};
Grid make_grid(uint32_t width, uint32_t height, std::span<const int> strides, unsigned per_cell);

// Whether a model that selects its boxes has as many rows, whatever the size of its picture.
bool is_count_of_queries(size_t rows);

// The one tensor of a dense head, [1, positions, attributes] or its transpose.
struct DenseHead {
    size_t output = 0;              // index
    bool attributes_first = false;  // [1, attributes, positions]
    size_t attributes = 0;
    Grid grid;
};
// What a family's dense head looks like.
struct DenseForm {
    bool attributes_first;    // publishes [1, attributes, positions]
    unsigned box_attributes;  // columns before the classes
    unsigned per_cell;        // anchors of a cell where the sidecar does not say
    unsigned extra = 0;       // columns behind the classes
};
// Finds the tensor by its positions. Errors: dec-role, dec-positions.
Result<DenseHead> locate_dense_head(const HeadRequest& request, const DenseForm& form);
// The same, and checks the classes. Errors: those, and dec-classes.
Result<DenseHead> find_dense_head(const HeadRequest& request, const DenseForm& form);
// Whether the only output has the form by its shape alone. A transposed head is taken for one only
// where nobody could take it for something else; with the 80 classes of COCO it is also a candidate
// when nobody says how many there are.
bool fits_dense_form(const HeadRequest& request, const DenseForm& form);

// Whether a dense head of any family could have this number of positions.
bool is_grid(const HeadRequest& request, size_t positions);

// Pixels of the model's input per unit of its boxes.
struct BoxUnit {
    float x = 1, y = 1;
};
// Of boxes that the model itself finished: what the sidecar says, else the whole input.
BoxUnit final_box_unit(const HeadRequest& request);

// A box before NMS, in pixels of the model's input.
struct Candidate {
    float x0, y0, x1, y1, score;
    int32_t class_id;
    uint32_t position;
    float angle = 0;  // radians, clockwise, about the centre; the corners are those before the turn
};
// A pixel of a class map that belongs to no class, by the type of the pixels: all bits are set.
template <typename Pixel>
constexpr Pixel no_class = std::numeric_limits<Pixel>::max();

// What belongs to the whole picture and is no class; in pixels of the model's input.
struct PictureDetails {
    std::vector<Keypoint> keypoints;
    std::vector<Mask> class_maps;      // pixels are classes of the tensor, or no_class
    std::vector<uint8_t> mask_pixels;  // of class_maps
    std::vector<float> embedding;
    std::string text;  // a line, UTF-8
    float text_score = 0;
    void clear();
};
struct Candidates {
    std::vector<Candidate> boxes;         // ascending positions
    std::vector<Classification> classes;  // of the whole picture
    PictureDetails picture;
    unsigned not_finite = 0;
    void clear();
    // Takes the candidate if its numbers are finite, else counts it.
    void add(const Candidate& candidate);
};

// The tensor of a dense head with positions as rows. Errors: those of matrix_of.
Result<Matrix> dense_matrix(std::span<const OutputTensor> tensors, const DenseHead& head);
// The box of a row that begins with centre and size in model pixels.
Candidate centred_box(const Matrix& matrix, uint32_t position, float score, int32_t class_id);

// Points that a skeleton of the sidecar names, at least; 0 without one.
unsigned points_named(std::string_view skeleton);
// The published skeleton of so many points, or "".
std::string_view skeleton_of(unsigned points);

// The activation that the sidecar puts behind a score.
class Activation {
public:
    explicit Activation(std::string_view name) : sigmoid_(name == "sigmoid") {}
    // Score of a stored value.
    float operator()(float value) const;
    // What a stored value must at least be to pass `threshold`; a little less, to be tested again
    // after the activation.
    float stored_threshold(float threshold) const;
    bool is_sigmoid() const { return sigmoid_; }

private:
    bool sigmoid_;
};

// What the graph makes the values of an output with, as ModelInfo::Output::ends_in.
std::string_view ends_in(const HeadRequest& request, const TensorInfo& output);
// Whether that is sums of products, with or without more behind the last one.
bool is_linear(std::string_view end);
// The activation that a decoder has to put behind the scores of an output: the sidecar's, unless
// the graph ends in it; else `logits` where the graph ends in sums of products, none where it has
// an activation of its own; `unknown` where nobody says.
std::string_view activation_for(const HeadRequest& request, const TensorInfo& output,
                                std::string_view logits, std::string_view unknown);

// The same for a table of boxes and scores: its scores are logits only where all of it are products
// with nothing behind them. A sum that adds a grid or a constant says nothing about the scores.
std::string_view activation_of_table(const HeadRequest& request, const TensorInfo& output);

// What may change from frame to frame.
struct RunContext {
    float threshold = 0;
    float fed_width = 0, fed_height = 0;  // what the model was told of the frame's size
    float mask_threshold = 0.5f;
};

// What a family adds to a box that was kept; in pixels of the model's input.
struct BoxDetails {
    std::vector<Keypoint> keypoints;
    std::optional<Mask> mask;
    std::vector<uint8_t> mask_pixels;  // of `mask`, 1 = the object
    unsigned not_finite = 0;           // values that were left out
    void clear();
};

// A decoder of one family for one model. Keeps scratch memory: one thread at a time.
class Head {
public:
    virtual ~Head() = default;
    // Adds to `out` what has a score of at least the threshold; positions in ascending order.
    virtual Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                             Candidates& out) = 0;
    // Fills `details` of a candidate of the last run() that was kept. The tensors are the same.
    virtual Result<void> add_details(std::span<const OutputTensor>, const RunContext&,
                                     const Candidate&, BoxDetails&) {
        return {};
    }
    // Classes of the tensor; 0 where the shape does not say.
    virtual unsigned classes() const = 0;
    // Names of the classes where nobody gives labels; empty = not known.
    virtual std::vector<std::string> class_names() const { return {}; }
    // The number of the first class in the tensors of a list.
    virtual unsigned first_class() const { return 0; }
    // Bones between the keypoints where the sidecar names none; "" = not known.
    virtual std::string_view skeleton() const { return {}; }
    // Keypoints of a box or of the picture; 0 = none.
    virtual unsigned keypoints() const { return 0; }
    // Whether the tensors hold corners, which a trained model keeps in order at every position.
    virtual bool holds_corners() const { return false; }
    // What logits get where the sidecar names it; "": no activation of a sidecar is read.
    virtual std::string_view logits() const { return {}; }
    // Whether it reads a table with rows and columns exchanged against the published form.
    virtual bool exchanged() const { return false; }
    // Whether boxes that overlap are suppressed where nobody says; `usual` in its family.
    virtual bool needs_nms(bool usual) const { return usual; }
    // What the sidecar can say otherwise of how it reads a box, for messages of doubt; "" =
    // nothing.
    virtual std::string_view note() const { return {}; }
    // What it puts behind the scores: "softmax", "sigmoid", or "none"; "" = there are no scores, or
    // the numbers themselves will show it.
    virtual std::string_view activation() const { return {}; }
    // Why the numbers of the last run() cannot be what the head takes them for, beside what
    // decoder.cpp sees in any boxes; "" = nothing speaks against it.
    virtual std::string doubt() const { return {}; }
};

}  // namespace vartml::vision
