// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/notices.h"

#include <algorithm>
#include <string>
#include <utility>

namespace vartml::gst {

// Guessed labels may be wrong, so the user is told of them.
void tell_guessed_labels(gpointer element, const CachedDecoder& entry) {
    const std::string source(entry.decoder.labels_source());
    if (source.empty()) return;
    const std::string text = "model '" + entry.model +
                             "' has no labels, so its classes get the names of " + source +
                             "; label-file or x-vartml-labels gives others";
    gst_element_message_full(GST_ELEMENT(element), GST_MESSAGE_INFO, GST_STREAM_ERROR,
                             GST_STREAM_ERROR_FORMAT, g_strdup(text.c_str()),
                             g_strdup(text.c_str()),  // gst-launch prints this one alone
                             __FILE__, GST_FUNCTION, __LINE__);
}

void warn_of_presumption(gpointer element, const CachedDecoder& entry) {
    const std::string text = entry.decoder.presumption();
    if (text.empty()) return;
    post_warning(element, "know what the model's numbers are",
                 {.error = {vartml::ErrorCode::bad_model, text},
                  .id = "dec-unnamed",
                  .property = "decoder",
                  .found = std::string(entry.decoder.family()),
                  .fix = "x-vartml-decoder=…"});
}

void post_selected(gpointer element, const CachedDecoder& entry) {
    const vartml::Decoder& d = entry.decoder;
    post_structure(
        element,
        gst_structure_new("vartml-decoder-selected", "decoder", G_TYPE_STRING,
                          std::string(d.family()).c_str(), "reason", G_TYPE_STRING,
                          std::string(d.reason()).c_str(), "classes", G_TYPE_UINT, d.classes(),
                          "labels", G_TYPE_UINT, static_cast<guint>(d.labels().size()), "model",
                          G_TYPE_STRING, entry.model.c_str(), "activation", G_TYPE_STRING,
                          std::string(d.activation()).c_str(), "score-threshold", G_TYPE_DOUBLE,
                          entry.own_threshold, nullptr));
}

namespace {

void warn_of_full_table(gpointer element, CachedDecoder& entry) {
    if (entry.suspected) return;
    std::string suspicion = entry.decoder.suspicion();
    if (suspicion.empty()) return;
    entry.suspected = true;
    post_warning(element, "trust the decoder",
                 {.error = {vartml::ErrorCode::bad_model,
                            std::move(suspicion) +
                                "; see that the pixels, the score threshold and the decoder are "
                                "those of the model"},
                  .id = "dec-full",
                  .property = "decoder",
                  .found = std::string(entry.decoder.family()),
                  .fix = "x-vartml-decoder=…"});
}

}  // namespace

// Numbers that cannot be what the family takes them for: an error where the shapes alone chose it,
// else a warning. False after the error.
bool accept_numbers(gpointer element, CachedDecoder& entry) {
    if (entry.doubted) return true;
    std::string doubt = entry.decoder.doubt();
    if (doubt.empty()) {
        warn_of_full_table(element, entry);
        return true;
    }
    entry.doubted = true;
    const bool guessed = entry.decoder.reason() == "shapes";
    Failure failure{.error = {vartml::ErrorCode::bad_model, std::move(doubt)},
                    .id = "dec-implausible",
                    .property = "decoder",
                    .found = std::string(entry.decoder.family()),
                    .fix = "x-vartml-decoder=…"};
    if (!guessed) {
        post_warning(element, "trust the decoder", failure);
        return true;
    }
    failure.error.message +=
        "; only the shapes chose it: set property decoder or the sidecar line x-vartml-decoder=… "
        "in section [modelinfo] to what the model is";
    return post_error(element, "decode the tensors", failure);
}

// What belongs to a whole picture is of no use where the picture is a tile of the frame. False
// after posting an error.
bool accept_tiles(gpointer element, const CachedDecoder& entry) {
    if (!entry.decoder.of_picture()) return true;
    const std::string family(entry.decoder.family());
    return post_error(
        element, "join the tiles of a frame",
        {.error = {vartml::ErrorCode::unsupported,
                   "the frame was inferred in tiles, but decoder " + family +
                       " finds something of a whole picture and no boxes that could be joined; set "
                       "inference-region=full-frame on vartmlinfer, or roi for parts of the frame"},
         .id = "dec-tiles",
         .property = "decoder",
         .found = family,
         .expected = "a detector",
         .fix = "inference-region=full-frame"});
}

}  // namespace vartml::gst
