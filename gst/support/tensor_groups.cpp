// SPDX-License-Identifier: Apache-2.0
// given: groups, ids and shapes, from the pad templates of GStreamer 1.28's decoders, and what
// those do with the numbers. Tensors that GStreamer calls column-major lie as the model wrote them,
// in the order of the dimensions that are given: its decoders read them so, and so do ours.
#include "gst/support/tensor_groups.h"

#include <algorithm>
#include <array>
#include <span>

#include "gst/support/tensor_meta.h"

namespace vartml::gst {
namespace {

using Frame = TensorGroup::Frame;

constexpr const char* field = "tensors";

constexpr uint32_t some = UINT32_MAX;  // any size

struct KnownTensor {
    std::string_view id;
    GstTensorDimOrder order;
    std::array<uint32_t, 4> dims;  // up to the first 0
    uint32_t varies;               // bits of the dimensions that caps have as 0
};

// What of a family's models a group is of.
enum class Of : uint8_t {
    any,      // all that have such shapes
    softmax,  // what ends in it
    logits,   // what ends in no activation
    named     // only tensors that the sidecar gives these ids: other forms have such shapes, too
};

struct KnownGroup {
    std::string_view id, family;
    Frame frame;
    Of of;
    std::array<KnownTensor, 4> tensors;  // up to the first without an id
};

constexpr auto rows = GST_TENSOR_DIM_ORDER_ROW_MAJOR, columns = GST_TENSOR_DIM_ORDER_COL_MAJOR;

constexpr KnownGroup known_groups[] = {
    {"yolo-v8-out",
     "yolo-v8",
     Frame::same_size,
     Of::any,
     {{{"yolo-v8-out", columns, {1, some, some}, 0}}}},
    {"yolo-v8-segmentation-out",
     "yolo-v8-seg",
     Frame::same_size,
     Of::any,
     {{{"yolo-v8-segmentation-out-detections", columns, {1, some, some}, 0},
       {"yolo-v8-segmentation-out-protos", columns, {1, some, some, some}, 0}}}},
    {"classification-generic-softmaxed-out",
     "classify",
     Frame::whole,
     Of::softmax,
     {{{"classification-generic-softmaxed-out", rows, {1, some}, 0}}}},
    {"classification-generic-out",
     "classify",
     Frame::whole,
     Of::logits,
     {{{"classification-generic-out", rows, {1, some}, 0}}}},
    {"ultra-lightweight-face-detection-rfb-320-v1-variant-1-out",
     "ultraface",
     Frame::stretched,
     Of::named,
     {{{"ssd-mobilenet-v1-variant-1-out-boxes", rows, {1, some, 4}, 0},
       {"ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
        rows,
        {1, some, 2},
        0}}}},
    {"ssd-mobilenet-v1-variant-1-out",
     "ssd",
     Frame::stretched,
     Of::named,
     {{{"generic-variant-1-out-count", rows, {1}, 0},
       {"ssd-mobilenet-v1-variant-1-out-scores", rows, {1, some}, 2},
       {"ssd-mobilenet-v1-variant-1-out-boxes", rows, {1, some, 4}, 2},
       {"ssd-mobilenet-v1-variant-1-out-classes", rows, {1, some}, 2}}}},
};

std::span<const KnownTensor> tensors_of(const KnownGroup& group) {
    const auto end = std::ranges::find(group.tensors, std::string_view(), &KnownTensor::id);
    return {group.tensors.begin(), end};
}

bool has_shape(const KnownTensor& known, const vartml::TensorView& view) {
    const auto end = std::ranges::find(known.dims, 0u);
    return view.data_type == vartml::DataType::float32 &&
           std::ranges::equal(view.shape, std::span(known.dims.begin(), end),
                              [](uint32_t is, uint32_t may) { return may == some || is == may; });
}

// What is in caps and beside the data, but for the name.
TensorGroup::Tensor describe(const InferenceRecord& record, size_t output) {
    TensorGroup::Tensor tensor;
    const vartml::TensorView& view = record.hw ? record.views[output] : record.outputs[output].cpu;
    tensor.dims = record.outputs[output].cpu.shape;
    tensor.type = type_name(view.data_type);
    if (record.hw) tensor.layout = vartml::to_string(view.layout);
    return tensor;
}

void name(TensorGroup::Tensor& tensor, std::string_view id, GstTensorDimOrder order) {
    tensor.id = id;
    tensor.quark = g_quark_from_string(tensor.id.c_str());
    tensor.order = order;
}

const vartml::ModelInfo::Output* said_of(const InferenceRecord& record, size_t output) {
    const auto& said = record.model_info.outputs;
    const auto it =
        std::ranges::find(said, record.outputs[output].name, &vartml::ModelInfo::Output::name);
    return it == said.end() ? nullptr : &*it;
}

// The outputs under the names that the sidecar gives them, else under their own.
TensorGroup own(const InferenceRecord& record) {
    TensorGroup group;
    group.id = own_group;
    for (size_t i = 0; i < record.outputs.size(); ++i) {
        const vartml::ModelInfo::Output* said = said_of(record, i);
        const bool columns_first = has_tensor_groups && said && said->column_major;
        name(group.tensors.emplace_back(describe(record, i)), record.tensor_ids[i],
             columns_first ? columns : rows);
    }
    return group;
}

bool ends_as(const KnownGroup& group, const InferenceRecord& record) {
    if (group.of == Of::any) return true;
    const vartml::ModelInfo::Output* said = said_of(record, 0);
    const std::string_view end = said ? std::string_view(said->ends_in) : "";
    return group.of == Of::softmax
               ? end == "softmax"
               : group.of == Of::logits && (end == "linear" || end == "product");
}

// The outputs as that group, where it is theirs; `named`: by the ids that they have already.
bool fill(TensorGroup& group, const KnownGroup& known, const InferenceRecord& record, bool named) {
    const auto tensors = tensors_of(known);
    if (tensors.size() != record.outputs.size() || record.hw) return false;
    group.id = known.id;
    group.frame = known.frame;
    std::vector<bool> taken(tensors.size());
    for (size_t i = 0; i < record.outputs.size(); ++i) {
        const auto fits = [&](const KnownTensor& one) {
            return !taken[size_t(&one - tensors.data())] && has_shape(one, record.outputs[i].cpu) &&
                   (!named || one.id == record.tensor_ids[i]);
        };
        const auto it = std::ranges::find_if(tensors, fits);
        if (it == tensors.end()) return false;
        const auto number = size_t(it - tensors.begin());
        taken[number] = true;
        TensorGroup::Tensor& tensor = group.tensors.emplace_back(describe(record, i));
        name(tensor, it->id, it->order);
        for (size_t d = 0; d < tensor.dims.size(); ++d)
            if (it->varies >> d & 1) tensor.dims[d] = 0;
    }
    return true;
}

}  // namespace

std::vector<TensorGroup> tensor_groups(const InferenceRecord& record, std::string_view family) {
    if (!has_tensor_groups) return {own(record)};
    std::vector<TensorGroup> groups;
    const auto add = [&](TensorGroup group) {
        if (std::ranges::find(groups, group.id, &TensorGroup::id) == groups.end())
            groups.push_back(std::move(group));
    };
    const std::string& said = record.model_info.group_id;
    // Their names say it, whatever the group is called.
    for (const KnownGroup& known : known_groups) {
        TensorGroup group;
        if ((said.empty() || said == known.id) && fill(group, known, record, true))
            add(std::move(group));
    }
    const bool is_known =
        std::ranges::find(known_groups, said, &KnownGroup::id) != std::end(known_groups);
    if (!said.empty() && !is_known) {
        TensorGroup group = own(record);
        group.id = said;
        add(std::move(group));
    }
    add(own(record));
    for (const KnownGroup& known : known_groups) {
        TensorGroup group;
        if (known.family == family && known.of != Of::named && ends_as(known, record) &&
            fill(group, known, record, false))
            add(std::move(group));
    }
    return groups;
}

bool is_row_major(std::string_view tensor_id) {
    return std::ranges::any_of(known_groups, [&](const KnownGroup& group) {
        return std::ranges::find(tensors_of(group), tensor_id, &KnownTensor::id) !=
               tensors_of(group).end();
    });
}

GstCaps* without_groups(GstCaps* caps) {
    if (!have_groups(caps)) return caps;
    caps = gst_caps_make_writable(caps);
    for (guint i = 0; i < gst_caps_get_size(caps); ++i)
        gst_structure_remove_field(gst_caps_get_structure(caps, i), field);
    return caps;
}

bool have_groups(const GstCaps* caps) {
    for (guint i = 0; i < gst_caps_get_size(caps); ++i)
        if (gst_structure_has_field(gst_caps_get_structure(caps, i), field)) return true;
    return false;
}

#if GST_CHECK_VERSION(1, 28, 0)

namespace {

GstStructure* tensor_structure(const TensorGroup::Tensor& tensor) {
    // A device's layout is no plain array: decoders that do not know it leave it alone.
    GstStructure* s =
        gst_structure_new(tensor.layout.empty() ? "tensor/strided" : "tensor/x-vartml-hw",
                          "tensor-id", G_TYPE_STRING, tensor.id.c_str(), "dims-order",
                          G_TYPE_STRING, tensor.order == columns ? "col-major" : "row-major",
                          "type", G_TYPE_STRING, tensor.type.c_str(), nullptr);
    if (!tensor.layout.empty())
        gst_structure_set(s, "layout", G_TYPE_STRING, tensor.layout.c_str(), nullptr);
    GValue dims = G_VALUE_INIT;
    g_value_init(&dims, GST_TYPE_ARRAY);
    for (const uint32_t dim : tensor.dims) {
        GValue one = G_VALUE_INIT;
        g_value_init(&one, G_TYPE_INT);
        g_value_set_int(&one, int(dim));
        gst_value_array_append_and_take_value(&dims, &one);
    }
    gst_structure_take_value(s, "dims", &dims);
    return s;
}

// `is_static`: it stays with a class, as pad templates do.
void append(GValue* list, GstStructure* tensor, bool is_static = false) {
    GValue one = G_VALUE_INIT;
    g_value_init(&one, GST_TYPE_CAPS);
    GstCaps* caps = gst_caps_new_full(tensor, nullptr);
    if (is_static) GST_MINI_OBJECT_FLAG_SET(caps, GST_MINI_OBJECT_FLAG_MAY_BE_LEAKED);
    g_value_take_boxed(&one, caps);
    gst_value_unique_list_append_and_take_value(list, &one);
}

GstStructure* group_structure(const TensorGroup& group) {
    GstStructure* groups = gst_structure_new_empty("tensorgroups");
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_UNIQUE_LIST);
    for (const TensorGroup::Tensor& tensor : group.tensors) append(&list, tensor_structure(tensor));
    gst_structure_take_value(groups, group.id.c_str(), &list);
    return groups;
}

const GstStructure* groups_in(const GstStructure* structure) {
    const GValue* value = gst_structure_get_value(structure, field);
    return value && GST_VALUE_HOLDS_STRUCTURE(value) ? gst_value_get_structure(value) : nullptr;
}

}  // namespace

GstCaps* add_group(GstCaps* caps, const TensorGroup& group) {
    caps = gst_caps_make_writable(caps);
    GstStructure* ours = group_structure(group);
    for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
        GstStructure* s = gst_caps_get_structure(caps, i);
        const GstStructure* there = groups_in(s);
        GstStructure* all =
            there ? gst_structure_copy(there) : gst_structure_new_empty("tensorgroups");
        const GValue* tensors = gst_structure_get_value(ours, group.id.c_str());
        const GValue* before = gst_structure_get_value(all, group.id.c_str());
        GValue both = G_VALUE_INIT;
        if (before && G_VALUE_TYPE(before) == GST_TYPE_UNIQUE_LIST)
            gst_value_unique_list_concat(&both, before, tensors);
        else
            gst_value_init_and_copy(&both, tensors);
        gst_structure_take_value(all, group.id.c_str(), &both);
        gst_structure_set(s, field, GST_TYPE_STRUCTURE, all, nullptr);
        gst_structure_free(all);
    }
    gst_structure_free(ours);
    return caps;
}

std::string group_names(const GstStructure* structure) {
    std::string names;
    const GstStructure* groups = groups_in(structure);
    for (int i = 0; groups && i < gst_structure_n_fields(groups); ++i)
        names += (i ? ", " : "") + std::string(gst_structure_nth_field_name(groups, guint(i)));
    return names;
}

std::vector<GQuark> group_tensors(const GstCaps* caps, const char* group) {
    std::vector<GQuark> ids;
    const GstStructure* groups = groups_in(gst_caps_get_structure(caps, 0));
    const GValue* list = groups ? gst_structure_get_value(groups, group) : nullptr;
    if (!list || G_VALUE_TYPE(list) != GST_TYPE_UNIQUE_LIST) return ids;
    for (guint i = 0; i < gst_value_unique_list_get_size(list); ++i) {
        const GValue* one = gst_value_unique_list_get_value(list, i);
        const GstCaps* tensor = GST_VALUE_HOLDS_CAPS(one) ? gst_value_get_caps(one) : nullptr;
        const char* id =
            tensor && gst_caps_get_size(tensor) > 0
                ? gst_structure_get_string(gst_caps_get_structure(tensor, 0), "tensor-id")
                : nullptr;
        if (id) ids.push_back(g_quark_from_string(id));
    }
    return ids;
}

bool takes_group(const GstStructure* structure, const TensorGroup& group) {
    if (!gst_structure_has_field(structure, field)) return true;
    const GstStructure* wanted = groups_in(structure);
    if (!wanted) return false;
    GstStructure* ours = group_structure(group);
    const bool takes =
        gst_structure_is_equal(ours, wanted) || gst_structure_is_subset(ours, wanted);
    gst_structure_free(ours);
    return takes;
}

// Lists are compared tensor by tensor, and a longer one is never part of a shorter: each type is
// there once as a plain array and once as a device has it, so that so many tensors are taken.
GstCaps* own_group_caps() {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_UNIQUE_LIST);
    for (const char* media : {"tensor/strided", "tensor/x-vartml-hw"})
        for (const std::string_view type : type_names())
            append(&list, gst_structure_new(media, "type", G_TYPE_STRING, type.data(), nullptr),
                   true);
    GstStructure* groups = gst_structure_new_empty("tensorgroups");
    gst_structure_take_value(groups, own_group, &list);
    GstCaps* caps = gst_caps_new_empty();
    GstStructure* s = gst_structure_new("video/x-raw", field, GST_TYPE_STRUCTURE, groups, nullptr);
    gst_caps_append_structure_full(caps, s, gst_caps_features_new_any());
    gst_structure_free(groups);
    return caps;
}

#else

GstCaps* add_group(GstCaps* caps, const TensorGroup&) {
    return caps;
}
std::string group_names(const GstStructure*) {
    return {};
}
std::vector<GQuark> group_tensors(const GstCaps*, const char*) {
    return {};
}
bool takes_group(const GstStructure*, const TensorGroup&) {
    return true;
}
GstCaps* own_group_caps() {
    return gst_caps_new_empty();
}

#endif

}  // namespace vartml::gst
