// SPDX-License-Identifier: Apache-2.0
// Heads that say where a box lies relative to something known: a cell of a grid, a prior box, an
// anchor. A family gives the priors, the outputs and the code; this file decodes.
#pragma once
#include "lib/vision/families.h"
#include "lib/vision/head.h"

namespace vartml::vision {

// Finds the outputs of heads that give one tensor per thing they say of a position: scores, boxes,
// landmarks; for all positions, or one set of tensors per stride.

// An output [1,rows,columns], or [rows,columns] as some exporters leave it.
struct Table {
    size_t rows = 0, columns = 0;
};
std::optional<Table> table_of(const TensorInfo& output);

// What a family wants of each position.
struct Column {
    std::string_view role;  // of the sidecar; "boxes" also goes by "offsets"
    size_t columns;         // 0: any number of at least 2
    bool optional = false;
    std::string_view hint{};  // part of the names of outputs, where shapes do not tell
};
constexpr size_t absent = ~size_t{0};
// Outputs of a run of positions, by index in the order of the columns wanted; `absent` for optional
// ones that are not there.
struct Part {
    size_t first = 0, rows = 0;  // positions
    std::vector<size_t> outputs;
};
// Positions of a stride; 0: of no stride in particular.
struct Rows {
    int stride;
    size_t rows;
};

// One part for all rows together where the outputs are that, else one part per element of `levels`.
// An output is told by its role, else by its shape; of columns that look alike the first output is
// the first one. Errors: dec-role (a column without output, or a role that does not fit its
// output), dec-positions (rows or x-vartml-stride that the input size does not give); `origin` says
// where the numbers of rows come from: "2 anchors per cell".
Result<std::vector<Part>> find_parts(const HeadRequest& request, std::span<const Column> wanted,
                                     std::span<const Rows> levels, const std::string& origin);
// Outputs in all parts.
size_t outputs_in(std::span<const Part> parts);

// dec-positions: `output` has other rows than the `expected`.
Error rows_error(const HeadRequest& request, const TensorInfo& output, size_t expected,
                 const std::string& origin);

// The role that the sidecar gives an output, or "".
std::string_view role_of(const HeadRequest& request, const TensorInfo& output);

// What a position is relative to, in pixels of the model's input.
struct Prior {
    float cx, cy, width, height;
};

// How four values make a box of a prior. Centres of `exponent` and `linear`: centre + value *
// centre_variance * side.
enum class BoxCode : uint8_t {
    exponent,   // side * exp(value * size_variance)
    linear,     // side * value
    distances,  // left, top, right, bottom from the centre, in units of the side
    corners,    // x0, y0, x1, y1 in units of the sidecar, else 0 to 1, whatever the prior
    centre,     // centre, width and height in the same units
};

// In which order a part's `outputs` are: scores and boxes always, the others where the numbers
// below say so.
struct AnchoredForm {
    std::vector<Prior> priors;
    std::vector<Part> parts;
    size_t scores = 0, boxes = 1, quality = absent, landmarks = absent;  // indices in a part
    BoxCode code = BoxCode::exponent;
    float centre_variance = 0.1f, size_variance = 0.2f;
    std::array<uint8_t, 4> order{0, 1, 2, 3};  // columns of x, y, width, height or of the corners
    unsigned first_score = 0;  // column of the scores' first, the background's or a class's
    unsigned first_class = 0, classes = 1;  // columns of the classes
    bool background_last = false;           // a column behind them
    bool background_said = false;           // where it is, by the sidecar
    int32_t first_class_id = 0;
    std::string activation;  // of the scores: "sigmoid", "softmax", else none; a family gives that
                             // of the published models
    std::string logits;      // where the graph has none: this, else softmax with a background and
                             // sigmoid without
    // A score is that of the class, or with `quality` the geometric mean of both, each cut to 0 to
    // 1.
    unsigned landmark_count = 0, first_landmark = 0;  // points; column of the first
    BoxUnit unit;                                     // of `corners` and `centre`
    std::vector<size_t> exchanged;                    // outputs [1,columns,rows], by index
    bool selected = false;                            // the model leaves no boxes to suppress
    bool order_said = false;                          // the sidecar names that of the boxes
    std::string class_name;  // of the only class, where the family knows it
};

class AnchoredHead final : public Head {
public:
    explicit AnchoredHead(AnchoredForm form);

    unsigned keypoints() const override { return form_.landmark_count; }
    unsigned classes() const override { return form_.classes; }
    std::vector<std::string> class_names() const override {
        if (form_.class_name.empty()) return {};
        return {form_.class_name};
    }
    bool holds_corners() const override {
        return form_.code == BoxCode::corners || form_.code == BoxCode::centre;
    }
    std::string_view logits() const override { return form_.logits; }
    bool needs_nms(bool usual) const override { return usual && !form_.selected; }
    std::string doubt() const override;
    std::string_view note() const override {
        if (form_.code != BoxCode::corners || form_.order_said) return {};
        return "; boxes are read as corners, where x-vartml-box-order=cxcywh in section "
               "[modelinfo] makes them centre and size";
    }
    std::string_view activation() const override {
        return form_.activation.empty() ? std::string_view("none") : form_.activation;
    }
    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override;
    Result<void> add_details(std::span<const OutputTensor> tensors, const RunContext& context,
                             const Candidate& candidate, BoxDetails& details) override;

private:
    struct Tensors {
        Matrix scores, boxes, quality, landmarks;
    };
    struct Score {
        float value;  // NaN when a number that it is made of is not finite
        int32_t class_id;
    };
    Result<Tensors> tensors_of(std::span<const OutputTensor> tensors, const Part& part) const;
    size_t find_rows(const Tensors& t, float threshold);
    Score score_of(const Tensors& t, uint32_t row, float threshold) const;
    Score softmax_score(const Matrix& scores, uint32_t row, float threshold) const;
    Candidate box(const Tensors& t, const Prior& prior, uint32_t row) const;
    Keypoint point(const Tensors& t, const Prior& prior, uint32_t row, unsigned index) const;
    bool points_finite(const Tensors& t, uint32_t row) const;

    AnchoredForm form_;
    Activation activation_;
    bool softmax_;
    std::vector<uint32_t> found_;
    size_t of_last_class_ = 0;  // positions of the last run that are most likely that
};

// One prior per position of a grid: the corner (offset 0) or centre (0.5) of its cell, as large as
// the stride.
std::vector<Prior> cell_priors(const Grid& grid, unsigned per_cell, float offset);
// Positions per level of a grid.
std::vector<Rows> rows_of_levels(const Grid& grid);

// Square priors of a stride, in pixels.
struct PriorLevel {
    int stride;
    std::vector<float> sides;
    // Of each side, how many priors stand beside and below each other in a cell, from its corner
    // on; empty: one, at the centre of the cell.
    std::vector<unsigned> density = {};
};
// Priors of the cells, and how many each level has. The sidecar's x-vartml-strides
// and x-vartml-anchors (pairs of width and height in pixels, as many for each stride) take the
// place of the `published` ones. Errors: dec-positions (numbers of strides and anchors that do not
// fit).
struct GridPriors {
    std::vector<Prior> priors;
    std::vector<Rows> levels;
    std::string origin;  // for messages: "the published priors of strides 8,16"
};
// A model that pools has as many cells as fit in the input, `pools`; others round up.
Result<GridPriors> grid_priors(const HeadRequest& request, std::span<const PriorLevel> published,
                               bool pools = false);

// Priors with their centres and sides cut to the input.
void cut_to_input(std::vector<Prior>& priors, const HeadRequest& request);

// How many positions a cell has: the sidecar's anchors shared out to `levels` strides, else the
// `published` number. Errors: dec-positions.
Result<unsigned> anchors_per_cell(const HeadRequest& request, unsigned published, size_t levels);

// Finished boxes in the order that the sidecar says, else corners that begin with x.
void take_box_order(AnchoredForm& form, const HeadRequest& request);

// fits() and create() of a family whose form `find` makes; it fits when no output is left over.
// Errors: those of `find` and of check_classes.
using FindForm = Result<AnchoredForm> (*)(const HeadRequest&);
bool fits_anchored(const HeadRequest& request, FindForm find);
Result<std::unique_ptr<Head>> create_anchored(const HeadRequest& request, FindForm find);

}  // namespace vartml::vision
