// SPDX-License-Identifier: Apache-2.0
// Sidecar files and decoders: from the output tensors of a detector or classifier to boxes and
// classes in frame pixels.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vartml/preprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml {

/// What a sidecar (`.modelinfo`) says; absent keys are empty.
struct ModelInfo {
    std::string file;      ///< where it comes from, for messages; "" = nowhere
    std::string group_id;  ///< upstream's id of the group of output tensors
    std::string decoder;   ///< nick of a decoder family, or ""
    std::vector<std::string> labels;
    std::string labels_file;  ///< where the labels come from, for messages; "" = `file` itself
    std::optional<unsigned> num_classes;
    int class_offset =
        0;  ///< label of the tensor's class 0; -1: class 0 is the background, without label
    std::optional<double> score_threshold, iou_threshold;
    std::optional<unsigned> max_detections;
    std::vector<int> strides;
    std::vector<float> anchors;
    std::vector<float> variance;  ///< of offsets from priors: of the centre and of the size; or
                                  ///< empty
    std::string activation;       ///< "none", "sigmoid", "softmax" or ""
    std::string background;  ///< which class of finished boxes is that of nothing: "first", "last",
                             ///< "none" or ""
    std::string box_order;   ///< "yxyx", "xyxy", "cxcywh" or ""
    std::string box_unit;    ///< of final boxes: "picture" (0 to 1), "pixel" (of the input) or ""
    std::string columns;     ///< of a table with a box per row: "batch,class,score,x0y0x1y1" or ""
    std::string box_form;    ///< of raw YOLO maps: "v3", "v5" or ""
    std::string peak;        ///< of heat maps: "quarter", "centroid" or ""
    std::optional<int> blank;    ///< of text: the class that is no character; -1: the last; else 0
    std::string skeleton;        ///< a name of skeletons(), or pairs "0-1;1-2;…"
    std::vector<int> keypoints;  ///< of a box: how many, and values of each, 2 or 3; or empty
    struct Input {
        std::string name;
        std::optional<ResizeMode> resize;
        std::optional<Interpolation> interpolation;
        std::optional<ChannelOrder> channels;
        std::vector<float> mean, scale, pad;  ///< 0, 1 or 3 numbers
        std::optional<double> crop_fraction;
        std::string feed;  ///< for inputs that are not the picture
        std::string picture;
        std::string weights_for;  ///< what the first filters are made for: "bytes" (0 to 255),
                                  ///< "units" (normalised pixels) or "", not known
        unsigned line = 0;        ///< of its section in `file`, for messages
        bool operator==(const Input&) const = default;
    };
    struct Output {
        std::string name, id, role;
        std::optional<int> stride{};
        std::optional<double> quant_scale{};
        std::optional<int> zero_point{};
        std::string ends_in{};  ///< what the graph makes the values with: "softmax", "log-softmax",
                                ///< "sigmoid", "relu" (cut at 0), "unit-length" (divided by its
                                ///< length), "argmax" (numbers of classes), "product" (with
                                ///< weights, and nothing behind it), "linear" (sums of them:
                                ///< logits); "" = not known
        std::string picture{};  ///< of a picture: "color", "rgb", "bgr", "luma", "map", "alpha"
        std::vector<float> ranges{};  ///< black and white of it, of all channels or of each
        unsigned line = 0;
        bool column_major = false;  ///< what GStreamer calls it; the values lie as the model has
                                    ///< them
        bool operator==(const Output&) const = default;
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    bool operator==(const ModelInfo&) const = default;
};

/// Parses the text of a sidecar. `file` is its name for messages and the folder of label files (""
/// = none). Errors: bad_model naming file, line and key; those of read_labels.
Result<ModelInfo> parse_modelinfo(std::string_view text, const std::string& file);
/// Whether every section of a sidecar names a tensor of the model, in its direction and with keys
/// that its type has a use for; without `inputs`, where only the outputs are known, none of an
/// input. Errors: bad_model naming file, line, section and the way out.
Result<void> check_modelinfo(const ModelInfo& info, std::span<const TensorInfo> inputs,
                             std::span<const TensorInfo> outputs);
/// The sidecar of a model by the search order of the elements: `file` if given, else the entry of
/// the compiled model where it says more than what the compiler saw in the graph, else
/// MODEL.modelinfo, MODEL without its last ending .modelinfo, DIRECTORY/modelinfo; an empty
/// ModelInfo where there is none. What the compiler saw in the graph is joined to any of them.
/// Errors: not_found when `file` does not exist, io, and those of parse_modelinfo.
Result<ModelInfo> find_modelinfo(const std::string& file, const std::string& model_path,
                                 const std::string& entry);
/// Whether a sidecar says no more than what a compiler sees in a graph by itself: what inputs are
/// fed that are no picture, what the first filters are made for, the columns of a table, a count of
/// classes, and what outputs end in.
bool is_of_graph_alone(const ModelInfo& info);
/// The text form, as `vartml compile --decoder` writes it: what `info` leaves open and its decoder
/// family knows (thresholds, pre-processing of the picture input) is filled in, labels are written
/// out.
std::string print_modelinfo(const ModelInfo& info, std::span<const TensorInfo> inputs,
                            std::span<const TensorInfo> outputs);
/// Both as one: what `first` leaves open is taken from `second`, input by input and output by
/// output.
ModelInfo join_modelinfo(ModelInfo first, const ModelInfo& second);
/// Labels of a text file: one per line, UTF-8, CRLF accepted, an empty last line ignored.
/// Errors: not_found, io, bad_model naming file and line.
Result<std::vector<std::string>> read_labels(const std::string& file);

/// A decoder family and the pixel conventions of the published models.
struct DecoderFamily {
    std::string_view nick;     ///< "yolox"
    std::string_view summary;  ///< one line for help texts
    double score_threshold, iou_threshold;
    PreprocessOptions input;
};
/// All families, in the order of the documentation.
std::span<const DecoderFamily> decoder_families();
/// By its nick, or by a name that people use for such models: case, `-`, `_`, blanks and the `v`
/// of a version do not matter, versions with the same head are the same, and the letter of a size
/// may follow: "yolov8", "YOLO11n-seg", "yolov5s". nullptr for others.
const DecoderFamily* find_decoder_family(std::string_view name);

/// Pre-processing of an input: sidecar, else the family, else RGB, 0, 1, stretch.
PreprocessOptions preprocess_options(const ModelInfo& info, const DecoderFamily* family,
                                     std::string_view input_name);

/// How pictures become the values of an input, and who says so.
struct PixelChoice {
    PreprocessOptions options;
    const DecoderFamily* family = nullptr;  ///< what Decoder::create would choose; nullptr: nothing
    std::string source;  ///< "the sidecar", "decoder yolox", "the input's type uint8"; "" = nobody:
                         ///< `options` are then those of most such models, or none at all

    /// "rgb, letterbox, mean 0, scale 0.003921569".
    std::string words() const;
    /// What a user should know: "pictures are fed as …; …", and where nobody says so what to do.
    std::string sentence() const;
    /// The section of a sidecar that says the same of the input.
    std::string section(std::string_view input_name) const;
};
/// The one choice of pixels, for elements, tools and the doctor alike. The family is chosen as
/// Decoder::create chooses it from the same `info`, `outputs`, size of the picture and `decoder`
/// ("" or "auto": nothing asked for); an input of integers takes the bytes; numbers of the sidecar
/// win over both.
PixelChoice choose_pixels(const ModelInfo& info, std::span<const TensorInfo> outputs,
                          const TensorInfo& input, uint32_t input_width, uint32_t input_height,
                          const std::string& decoder = "");

/// One output tensor of a run: where its bytes are and how they lie.
struct OutputTensor {
    const void* data = nullptr;
    std::string_view name;
    const TensorView* view = nullptr;  ///< of `data`
    const TensorView* cpu = nullptr;   ///< CPU view: true channel and position counts
};

/// A line between two keypoints, by their numbers.
using Bone = std::pair<uint32_t, uint32_t>;
/// The bones of a published kind of keypoints.
struct Skeleton {
    std::string_view name;  ///< "coco17"
    uint32_t points;
    std::span<const Bone> bones;
};
/// All that have a name.
std::span<const Skeleton> skeletons();
/// The bones of a name of skeletons(), or of pairs "0-1;1-2"; none for "" and "none". nullopt where
/// the text is none of these.
std::optional<std::vector<Bone>> parse_skeleton(std::string_view text);

/// A joint or landmark of a detection, or of the whole picture, in frame pixels.
struct Keypoint {
    float x = 0, y = 0;
    float score = 1;      ///< 1 where the model gives none
    bool visible = true;  ///< whether the score reaches the threshold
};
/// A small picture of region numbers over a rectangle of the frame.
struct Mask {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< what it covers, frame pixels, half-open
    uint32_t width = 0, height = 0;        ///< of the small picture; rows are dense
    size_t first = 0;                      ///< its first byte in Decoded::mask_pixels
    unsigned pixel_bytes = 1;              ///< 2 (host's order) where classes are more than 255
};
/// A box in frame pixels, corners, half-open.
struct Detection {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    float score = 0;
    int32_t class_id = 0;
    float angle = 0;  ///< radians, clockwise on the screen, about the centre of the corners; they
                      ///< are those before the turn
    uint32_t first_keypoint = 0, keypoints = 0;  ///< range in Decoded::keypoints
    int32_t mask = -1;  ///< index in Decoded::masks, pixels 1 are the object; -1: none
};
/// A class of the whole picture.
struct Classification {
    int32_t class_id = 0;
    float score = 0;
};
struct Decoded {
    std::vector<Detection> detections;    ///< score descending
    std::vector<Classification> classes;  ///< score descending
    std::vector<Keypoint> keypoints;      ///< of detections, in their order; without detections,
                                          ///< of the whole picture
    std::vector<Mask> masks;              ///< of detections
    std::vector<Mask> class_maps;         ///< classes of the whole picture: pixels are class_id,
                                          ///< 255 (of two bytes: 65535) = none; one, or one per
                                          ///< class where a pixel may have several
    std::vector<uint8_t> mask_pixels;     ///< of masks and class_maps
    std::vector<float> embedding;         ///< of the whole picture or region, length 1
    std::string text;                     ///< a line of text that the whole picture or region
                                          ///< shows, UTF-8; "" = none
    float text_score = 0;                 ///< of `text`: the mean of its characters
    unsigned suppressed = 0;              ///< candidates removed by NMS
    unsigned not_finite = 0;              ///< candidates dropped for NaN or infinity
};

enum class Nms : uint8_t { automatic, per_class, class_agnostic, off };

struct DecodeOptions {
    std::string
        decoder{};  ///< "" or "auto": sidecar, ids, shapes; with a '/': a library (decoder.h)
    double score_threshold = -1;  ///< -1: sidecar, else family
    double iou_threshold = -1;
    unsigned max_detections = 0;  ///< 0: sidecar, else 100
    unsigned top_k = 1;
    Nms nms = Nms::automatic;
    std::vector<std::string> classes{};  ///< labels or indices kept; empty = all
    unsigned min_size = 0;               ///< pixels
    double mask_threshold = 0.5;         ///< probability from which a pixel belongs to the mask
    double keypoint_threshold = 0;       ///< score from which a keypoint is visible
};

/// What a program may want to know of a decoder that could not be made, beside the sentence.
struct DecodeFault {
    std::string id;  ///< dec-unknown, -unfit, -role, -positions, -classes, -library; stable
    std::string found, expected, fix;
};

/// Decodes the outputs of one model. Thread-safety: decode() keeps scratch memory; one thread at a
/// time.
class Decoder {
public:
    /// `outputs` in the order that decode() will get them; `input_width`, `input_height` of the
    /// model's picture input in pixels. Counts of classes and positions are checked here against
    /// labels, sidecar and input size. Errors: not_found (no family fits, or several do; the
    /// sentence lists shapes and candidates), bad_model (count or role mismatch; outputs of another
    /// family than the one that was named), invalid_argument (options). `fault`, if given, is
    /// filled for all but the last.
    static Result<Decoder> create(const ModelInfo& info, std::span<const TensorInfo> outputs,
                                  uint32_t input_width, uint32_t input_height,
                                  const DecodeOptions& options, DecodeFault* fault = nullptr);

    std::string_view family() const;  ///< nick
    std::string_view reason() const;  ///< why: "property", "sidecar", "ids", "shapes"
    unsigned classes() const;         ///< of the tensor; 0 where its shape does not say
    /// Whether what it finds belongs to the whole picture (a class, a map, one set of points) and
    /// is no list of boxes.
    bool of_picture() const;
    double iou_threshold() const;  ///< in use
    /// What is put behind the scores: "softmax", "sigmoid" or "none"; "" = there are none, or the
    /// numbers have not shown it yet.
    std::string_view activation() const;
    /// Why the numbers of the first frames cannot be what the family takes them for: a sentence
    /// that names the family and others that read such outputs; "" = nothing speaks against it.
    std::string doubt() const;
    /// The same of what is hardly meant, but may be: a table that is full of boxes which lie on
    /// each other or at the border of the frame. "" where doubt() says more.
    std::string suspicion() const;
    /// What numbers are taken for that neither model nor sidecar calls so: a vector for the classes
    /// of the picture, a map for the mask of one thing; a sentence with what else they may be and
    /// the ways out, "" = somebody says it, or shapes leave no doubt.
    std::string presumption() const;
    const std::vector<std::string>& labels() const;
    /// "the 80 classes of COCO" where neither sidecar nor user says labels and the number of
    /// classes is that of a data set that most such models are trained on; else "".
    std::string_view labels_source() const;
    std::string skeleton() const;  ///< of keypoints, as ModelInfo::skeleton; "" = not known
    std::string label(int32_t class_id) const;  ///< "class-<n>" without labels

    /// What may change while running; as in DecodeOptions. set_classes fails with invalid_argument
    /// for a name or index that the model does not have, and then changes nothing.
    void set_thresholds(double score, double iou);
    void set_limits(unsigned max_detections, unsigned top_k, unsigned min_size, Nms nms);
    void set_detail_thresholds(double mask, double keypoint);
    Result<void> set_classes(std::span<const std::string> classes);

    /// Boxes come out mapped by `to_frame`, clipped to the frame, without empty ones. Reuses the
    /// memory of `decoded`. `fed_width`, `fed_height`: the frame's size when it was inferred, which
    /// models with an input for it (x-vartml-feed frame-size) take as the unit of their boxes; 0 =
    /// the frame's size now. Errors: invalid_argument (tensors of another model), unsupported
    /// (type), bad_model (a class without label).
    Result<void> decode(std::span<const OutputTensor> tensors, const Affine& to_frame,
                        uint32_t frame_width, uint32_t frame_height, Decoded& decoded,
                        uint32_t fed_width = 0, uint32_t fed_height = 0);

    Decoder(Decoder&&) noexcept;
    Decoder& operator=(Decoder&&) noexcept;
    ~Decoder();

private:
    struct State;
    explicit Decoder(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace vartml
