// SPDX-License-Identifier: Apache-2.0
// What vartmlinfer asks its vartmldecode before the first frame becomes a tensor: how its outputs
// will be decoded, because the decoder family says what the model's input looks like.
#pragma once
#include <gst/gst.h>

#include <string>
#include <vector>

#include <vartml/postprocess.h>

namespace vartml::gst {

// What a vartmldecode was told by its properties; "" = unset.
struct DecoderWish {
    std::string element;  // its name, for messages
    std::string decoder;  // nick, or "auto"
    std::string modelinfo_file, label_file;
    bool operator==(const DecoderWish&) const = default;
};

// Asks all elements behind the pad: a custom query, which queues, tees and bins pass on. Takes no
// lock of ours; any thread. The first of each chain answers, further ones only where it leaves the
// tensors on the frame.
std::vector<DecoderWish> ask_decoders(GstPad* src);

// The other side. Elements that decode add their wish and pass the query on where they leave the
// tensors.
bool is_decoder_query(GstQuery* query);
void add_wish(GstQuery* query, const DecoderWish& wish);
// Whether the query comes by an element that has decoded the tensors and leaves them: who stands
// behind another model decodes that one's. `set_decoded` gives what it was, for the branches of a
// tee in front.
bool is_decoded(GstQuery* query);
bool set_decoded(GstQuery* query, bool decoded);

// What a decoder knows of a model: the model's own sidecar, then the decoder's for what that leaves
// open; labels of a file win over both.
vartml::ModelInfo info_for_decoder(const vartml::ModelInfo& of_model,
                                   const vartml::ModelInfo& of_decoder,
                                   const std::vector<std::string>& labels,
                                   const std::string& label_file);
// The same from the wish. What cannot be read is left out: vartmldecode says why.
vartml::ModelInfo info_for_decoder(const vartml::ModelInfo& of_model, const DecoderWish& wish);

}  // namespace vartml::gst
