// SPDX-License-Identifier: Apache-2.0
// Properties of event and query types. GStreamer's macros for these mix two enumerations, which
// C++20 deprecates.
#pragma once
#include <gst/gst.h>

namespace vartml::gst {

inline bool is_serialized(const GstEvent* event) {
    return (gst_event_type_get_flags(GST_EVENT_TYPE(event)) & GST_EVENT_TYPE_SERIALIZED) != 0;
}
inline bool is_sticky(const GstEvent* event) {
    return (gst_event_type_get_flags(GST_EVENT_TYPE(event)) & GST_EVENT_TYPE_STICKY) != 0;
}
inline bool is_serialized(const GstQuery* query) {
    return (gst_query_type_get_flags(GST_QUERY_TYPE(query)) & GST_QUERY_TYPE_SERIALIZED) != 0;
}

}  // namespace vartml::gst
