// SPDX-License-Identifier: Apache-2.0
// What users are told of a decoder: which it is, what was guessed for it, and what speaks against
// it.
#pragma once
#include "gst/decode/cache.h"

namespace vartml::gst {

// `element` is the GstVartmlDecode.

// An INFO message where labels are those of a data set.
void tell_guessed_labels(gpointer element, const CachedDecoder& entry);
// A warning where numbers are taken for what nobody calls them.
void warn_of_presumption(gpointer element, const CachedDecoder& entry);
// The message `vartml-decoder-selected`.
void post_selected(gpointer element, const CachedDecoder& entry);
// Whether the numbers of a frame may be what the family takes them for; false after posting an
// error.
bool accept_numbers(gpointer element, CachedDecoder& entry);
// Whether what the family finds in tiles of a frame can be joined; false after posting an error.
bool accept_tiles(gpointer element, const CachedDecoder& entry);

}  // namespace vartml::gst
