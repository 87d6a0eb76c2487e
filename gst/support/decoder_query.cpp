// SPDX-License-Identifier: Apache-2.0
#include "gst/support/decoder_query.h"

namespace vartml::gst {
namespace {

constexpr const char* query_name = "vartml-decoders";

std::string text_of(const GstStructure* s, const char* field) {
    const gchar* text = gst_structure_get_string(s, field);
    return text ? text : "";
}

}  // namespace

std::vector<DecoderWish> ask_decoders(GstPad* src) {
    GstQuery* query = gst_query_new_custom(GST_QUERY_CUSTOM, gst_structure_new_empty(query_name));
    // Nobody says that the query is answered: every branch behind a tee is asked.
    (void)gst_pad_peer_query(src, query);
    std::vector<DecoderWish> wishes;
    const GstStructure* answers = gst_query_get_structure(query);
    for (int i = 0; i < gst_structure_n_fields(answers); ++i) {
        const gchar* field = gst_structure_nth_field_name(answers, guint(i));
        const GValue* value = gst_structure_get_value(answers, field);
        if (!GST_VALUE_HOLDS_STRUCTURE(value)) continue;
        const GstStructure* s = gst_value_get_structure(value);
        wishes.push_back({text_of(s, "element"), text_of(s, "decoder"),
                          text_of(s, "modelinfo-file"), text_of(s, "label-file")});
    }
    gst_query_unref(query);
    return wishes;
}

bool is_decoder_query(GstQuery* query) {
    const GstStructure* s = gst_query_get_structure(query);
    return GST_QUERY_TYPE(query) == GST_QUERY_CUSTOM && s && gst_structure_has_name(s, query_name);
}

void add_wish(GstQuery* query, const DecoderWish& wish) {
    GstStructure* answers = gst_query_writable_structure(query);
    GstStructure* s = gst_structure_new(
        "wish", "element", G_TYPE_STRING, wish.element.c_str(), "decoder", G_TYPE_STRING,
        wish.decoder.c_str(), "modelinfo-file", G_TYPE_STRING, wish.modelinfo_file.c_str(),
        "label-file", G_TYPE_STRING, wish.label_file.c_str(), nullptr);
    const std::string field = "wish-" + std::to_string(gst_structure_n_fields(answers));
    gst_structure_set(answers, field.c_str(), GST_TYPE_STRUCTURE, s, nullptr);
    gst_structure_free(s);
}

bool is_decoded(GstQuery* query) {
    gboolean decoded = FALSE;
    gst_structure_get_boolean(gst_query_get_structure(query), "decoded", &decoded);
    return decoded;
}

bool set_decoded(GstQuery* query, bool decoded) {
    const bool before = is_decoded(query);
    gst_structure_set(gst_query_writable_structure(query), "decoded", G_TYPE_BOOLEAN,
                      gboolean(decoded), nullptr);
    return before;
}

vartml::ModelInfo info_for_decoder(const vartml::ModelInfo& of_model,
                                   const vartml::ModelInfo& of_decoder,
                                   const std::vector<std::string>& labels,
                                   const std::string& label_file) {
    vartml::ModelInfo info = vartml::join_modelinfo(of_model, of_decoder);
    if (labels.empty()) return info;
    info.labels = labels;
    info.labels_file = label_file;
    return info;
}

vartml::ModelInfo info_for_decoder(const vartml::ModelInfo& of_model, const DecoderWish& wish) {
    vartml::ModelInfo of_decoder;
    std::vector<std::string> labels;
    if (!wish.modelinfo_file.empty()) {
        if (auto read = vartml::find_modelinfo(wish.modelinfo_file, "", ""))
            of_decoder = *std::move(read);
    }
    if (!wish.label_file.empty()) {
        if (auto read = vartml::read_labels(wish.label_file)) labels = *std::move(read);
    }
    return info_for_decoder(of_model, of_decoder, labels, wish.label_file);
}

}  // namespace vartml::gst
