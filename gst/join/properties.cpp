// SPDX-License-Identifier: Apache-2.0
#include "gst/join/properties.h"

namespace vartml::gst {

std::span<const Property<JoinSettings>> join_properties() {
    using S = JoinSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"tolerance", "Tolerance",
         "Nanoseconds that the running times of a picture and its metadata may differ by; none: "
         "half a frame of sink_main",
         any_time, P::Time{&S::tolerance}},
        {"sync", "Sync", "Wait for the metadata of each picture", until_ready, P::Flag{&S::sync}},
        {"timeout", "Timeout",
         "Nanoseconds that live pictures wait longer than the latency of the branches", until_ready,
         P::Time{&S::timeout}},
        {"region", "Region",
         "Part of the main picture that sink_meta shows, `x,y,w,h` in its pixels; unset: all of "
         "it",
         until_ready, P::Text{&S::region}},
    };
    return all;
}

}  // namespace vartml::gst
