// SPDX-License-Identifier: Apache-2.0
// Statistics in Prometheus's text format (0.0.4).
#pragma once
#include <gst/gst.h>

#include <map>
#include <string>

namespace vartml::gst {

// Samples by metric: those of one metric stand together. Thread-safety: none.
class Exposition {
public:
    // Each number of a property `stats`: the structure vartml-infer-stats with the field
    // in-flight-max gives vartml_infer_in_flight_max, with the element and its pipeline as labels.
    // A list of structures gives those of each, with its field `name` as label. Texts are left out.
    void add(const std::string& pipeline, const std::string& element, const GstStructure* stats);
    std::string text() const;

private:
    void add_fields(const std::string& prefix, const std::string& labels,
                    const GstStructure* structure);
    std::map<std::string, std::string> metrics_;  // name to lines
};

}  // namespace vartml::gst
