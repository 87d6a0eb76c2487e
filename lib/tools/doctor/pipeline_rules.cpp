// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "lib/base/text.h"

namespace vartml::doctor {
namespace {

using Element = PipelineElement;

std::string quoted_name(const Element& e) {
    return e.factory + " '" + e.name + "'";
}

bool starts_inference(const Element& e) {
    return e.factory == "vartmlinfer" || e.factory == "onnxinference";
}

// Reads what inference attached to frames.
bool reads_results(const Element& e) {
    constexpr std::string_view readers[] = {
        "vartmldecode",           "vartmlpicture",  "vartmltrack",
        "vartmlgallery",          "vartmlzones",    "vartmlroi",
        "vartmloverlay",          "vartmlpublish",  "vartmlmetajoin",
        "objectdetectionoverlay", "tensordecodebin"};
    return std::ranges::find(readers, e.factory) != std::end(readers) ||
           e.classification.find("Tensordecoder") != std::string::npos;
}

std::string nearest_of(const std::string& name, const std::vector<std::string>& known) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    return std::string(nearest_name(name, views));
}

void missing_element(Examination& e, const PipelineFault& fault, const std::string& near) {
    const std::string& name = fault.names.at(0);
    const auto [package, is_sure] = package_of(name);
    const std::string other(replacement_of(name));
    const std::string what = "there is no element '" + name + "'";
    if (name.starts_with("vartml") && near.empty())
        return e.problem(what +
                             ": GStreamer does not find the plugin of gst-vartml, see check "
                             "'plugin'",
                         "gst-inspect-1.0 " + name, "no-element");
    if (!other.empty())
        return e.problem(
            what + ", it is of another vendor's plugins; here " + other + " does its work", other,
            "no-element");
    if (!near.empty() && !is_sure)
        return e.problem(what + "; did you mean '" + near + "'?", near, "no-element");
    if (!package.empty())
        return e.problem(what + "; the package " + std::string(package) + " has it",
                         "sudo apt-get install " + std::string(package), "no-element");
    e.problem(what + ": it is misspelt, or its plugin is not installed or not on GST_PLUGIN_PATH",
              "gst-inspect-1.0 | grep -i " + name.substr(0, 5), "no-element");
}

void unknown_property(Examination& e, const PipelineFault& fault) {
    const std::string &property = fault.names.at(0), &element = fault.names.at(1);
    const std::string near = nearest_of(property, fault.known);
    e.problem("element " + element + " has no property '" + property + "'" +
                  (near.empty() ? "" : "; did you mean '" + near + "'?"),
              near.empty() ? "gst-inspect-1.0 " + element : element + ' ' + near + "=…",
              "no-property");
}

void wrong_value(Examination& e, const PipelineFault& fault) {
    const std::string &property = fault.names.at(0), &element = fault.names.at(1);
    const std::string value = fault.names.size() > 2 ? fault.names[2] : "";
    std::string choices;
    for (const std::string& known : fault.known) choices += (choices.empty() ? "" : ", ") + known;
    std::string near = nearest_of(value, fault.known);
    if (near.empty() && fault.known.size() > 1) near = fault.known.front();
    e.problem("property '" + property + "' of " + element + " cannot be '" + value + "'" +
                  (choices.empty() ? "" : ", expected " + choices),
              near.empty() ? "gst-inspect-1.0 " + element : element + ' ' + property + '=' + near,
              "value");
}

void faults(Examination& e, const Pipeline& pipeline) {
    // All missing elements share the names that are there.
    const auto* known = pipeline.faults.empty() ? nullptr : &pipeline.faults.front().known;
    for (const PipelineFault& fault : pipeline.faults) {
        if (fault.kind == "no-element" && !fault.names.empty()) {
            missing_element(e, fault, nearest_of(fault.names[0], *known));
        } else if (fault.kind == "no-property" && fault.names.size() > 1) {
            unknown_property(e, fault);
        } else if (fault.kind == "value" && fault.names.size() > 1) {
            wrong_value(e, fault);
        } else if (fault.kind == "link") {
            e.problem("two elements have no format in common: " + fault.text,
                      "put videoconvert, or a decoder such as decodebin, between them", "link");
        } else {
            e.problem("the line cannot be read: " + fault.text,
                      "check quotes, '!' between elements and '.' behind names of elements",
                      "syntax");
        }
    }
}

void unreadable(Examination& e, const Element& element, const std::string& property,
                const std::string& path, const std::string& change) {
    if (::access(path.c_str(), R_OK) == 0) return;
    e.problem(quoted_name(element) + " cannot read " + path + " (" + property +
                  "): " + std::strerror(errno),
              change, "source");
}

void sources(Examination& e, const Pipeline& pipeline) {
    for (const Element& element : pipeline.elements) {
        const auto value = [&](const char* property) {
            const auto found = element.properties.find(property);
            return found == element.properties.end() ? std::string() : found->second;
        };
        if (element.factory == "filesrc") {
            const std::string path = value("location");
            if (path.empty()) {
                e.problem(quoted_name(element) + " has no location", "filesrc location=FILE",
                          "source");
            } else {
                unreadable(e, element, "location", path, "filesrc location=FILE");
            }
        }
        const std::string uri = value("uri");
        if (uri.starts_with("file://") && uri.find('%') == uri.npos)
            unreadable(e, element, "uri", uri.substr(7), element.factory + " uri=file:///…");
        if (element.factory == "v4l2src") {
            const std::string device = value("device").empty() ? "/dev/video0" : value("device");
            unreadable(e, element, "device", device,
                       ::access(device.c_str(), F_OK) == 0 ? "sudo usermod -aG video $USER"
                                                           : "v4l2src device=/dev/video…");
        }
    }
}

// Elements that give their frames no metadata of inference, once one of these is set, or always.
struct Lossy {
    std::string_view factory;
    std::vector<std::string_view> properties;
};
const Lossy lossy[] = {
    // measured, GStreamer 1.26
    {"alpha", {}},
    {"compositor", {}},
    {"gaussianblur", {}},
    {"smooth", {}},
    {"videomedian", {}},
    {"videomixer", {}},
    {"videocrop", {"top", "left", "right", "bottom"}},
    {"videobox", {"top", "left", "right", "bottom", "autocrop"}},
    {"videoflip", {"method", "video-direction"}},
    {"aspectratiocrop", {"aspect-ratio"}},
};

// From 1.28 on elements take metadata along and tell what they do to the picture; vartmldecode
// follows, and refuses what it cannot.
bool tells_of_changes(const Examination& e) {
    return gstreamer_version(e) >= Version{1, 28, 0};
}

bool loses_metadata(const Element& element) {
    return std::ranges::any_of(lossy, [&](const Lossy& row) {
        return row.factory == element.factory &&
               (row.properties.empty() ||
                std::ranges::any_of(row.properties, [&](std::string_view property) {
                    return element.properties.contains(std::string(property));
                }));
    });
}

// The next of `elements` that fits.
template <typename Fits>
const Element* first(const std::vector<const Element*>& elements, Fits fits) {
    const auto found = std::ranges::find_if(elements, [&](const Element* e) { return fits(*e); });
    return found == elements.end() ? nullptr : *found;
}

void lost_metadata(Examination& e, const Pipeline& pipeline) {
    if (tells_of_changes(e)) return;
    for (const Element& element : pipeline.elements) {
        const bool fields = element.factory == "deinterlace";  // progressive frames pass
        if (!loses_metadata(element) && !fields) continue;
        const Element* infer = first(pipeline.before(element.name), starts_inference);
        const Element* reader = first(pipeline.behind(element.name), reads_results);
        if (!infer || !reader) continue;
        std::string line = pipeline.launch_text(element) + " ! " + pipeline.launch_text(*infer);
        for (const Element* other : pipeline.between(infer->name, reader->name))
            if (other != &element) line += " ! " + pipeline.launch_text(*other);
        if (fields) {
            e.note(quoted_name(element) + " stands between " + infer->factory + " and " +
                       reader->factory +
                       " and drops what inference attached to the frame where it is interlaced",
                   line + " ! " + pipeline.launch_text(*reader), "dec-lost");
            continue;
        }
        e.problem(quoted_name(element) + " stands between " + infer->factory + " and " +
                      reader->factory +
                      " and drops what inference attached to the frame, so that nothing reaches " +
                      reader->factory,
                  line + " ! " + pipeline.launch_text(*reader), "dec-lost");
    }
}

// A camera that fills the dma-bufs of the element behind it, which this user cannot make: v4l2src
// says only that it has no memory.
void imports(Examination& e, const Pipeline& pipeline) {
    const std::string heap = e.request.surroundings.dev_folder + "/dma_heap/system";
    const std::string& udmabuf = e.request.surroundings.udmabuf;
    for (const std::string& path : {udmabuf, heap})
        if (::access(path.c_str(), R_OK | W_OK) == 0) return;
    for (const Element& element : pipeline.elements) {
        const auto mode = element.properties.find("io-mode");
        if (element.factory != "v4l2src" || mode == element.properties.end() ||
            mode->second != "dmabuf-import")
            continue;
        if (const Element* reader = first(pipeline.behind(element.name), starts_inference))
            e.problem(quoted_name(element) + " fills dma-bufs of " + reader->factory +
                          ", and this user may use neither " + udmabuf + " nor " + heap +
                          " to make them; those of the camera's driver need no such rights",
                      pipeline.launch_text(element, {{"io-mode", "dmabuf"}}), "no-dma-buf");
    }
}

bool scales(const Element& e) {
    return e.classification.find("Scaler") != std::string::npos;
}

bool may_add_borders(const Element& e) {
    const auto found = e.properties.find("add-borders");
    return scales(e) && (found == e.properties.end() || found->second != "false");
}

bool said(const Pipeline& pipeline, std::string_view id) {
    return std::ranges::find(pipeline.messages, id, &PipelineMessage::id) !=
           pipeline.messages.end();
}

// What the trial has not seen, because its pictures have another shape than the user's.
void borders(Examination& e, const Pipeline& pipeline) {
    if (said(pipeline, "dec-geometry") || tells_of_changes(e)) return;
    for (const Element& element : pipeline.elements) {
        if (!may_add_borders(element)) continue;
        const Element* infer = first(pipeline.before(element.name), starts_inference);
        const Element* reader = first(pipeline.behind(element.name), reads_results);
        if (infer && reader)
            e.note(quoted_name(element) + " stands between " + infer->factory + " and " +
                       reader->factory +
                       " and adds borders where the shape of the picture changes; boxes would be "
                       "misplaced then",
                   pipeline.launch_text(element, {{"add-borders", "false"}}), "dec-geometry");
    }
}

void inference_missing(Examination& e, const Pipeline& pipeline) {
    for (const Element& element : pipeline.elements) {
        if (element.factory != "vartmldecode" && element.factory != "vartmlpicture" &&
            element.factory != "vartmltrack")
            continue;
        const std::vector<const Element*> before = pipeline.before(element.name);
        // Elements that get their pads while running cannot be looked behind.
        const bool whole =
            first(before, [](const Element& b) { return b.classification.starts_with("Source"); });
        if (first(before, starts_inference)) continue;
        if (!whole && !before.empty()) continue;
        e.problem("no vartmlinfer stands before " + quoted_name(element) +
                      ", so it has nothing to work on",
                  joined({"vartmlinfer model=MODEL", element.factory == "vartmltrack"
                                                         ? "vartmldecode ! vartmltrack"
                                                         : pipeline.launch_text(element)}),
                  "no-inference");
    }
}

// Whether a sink holds its first frame until all sinks have one.
bool waits_for_others(const Element& sink) {
    const auto async = sink.properties.find("async");
    return async == sink.properties.end() || async->second != "false";
}

// Whether pushing into `name` blocks until a sink that `counts` has shown the frame.
bool runs_into_sink(const Pipeline& pipeline, const std::string& name,
                    bool (*counts)(const Element&)) {
    const Element* element = pipeline.find(name);
    if (!element || element->factory.find("queue") != std::string::npos) return false;
    // It takes frames in one thread and gives them out in another.
    if (starts_inference(*element) && element->factory == "vartmlinfer") return false;
    if (element->classification.starts_with("Sink")) return counts(*element);
    return std::ranges::any_of(element->feeds, [&](const std::string& next) {
        return runs_into_sink(pipeline, next, counts);
    });
}

void queues(Examination& e, const Pipeline& pipeline) {
    for (const Element& tee : pipeline.elements) {
        if (tee.factory != "tee" || tee.feeds.size() < 2) continue;
        std::vector<std::string> direct;
        for (const std::string& next : tee.feeds)
            if (runs_into_sink(pipeline, next, [](const Element&) { return true; }))
                direct.push_back(next);
        if (direct.empty()) continue;
        const auto waiting = std::ranges::count_if(direct, [&](const std::string& next) {
            return runs_into_sink(pipeline, next, waits_for_others);
        });
        const Element* next = pipeline.find(direct.front());
        const std::string text = std::to_string(direct.size()) + " of the " +
                                 std::to_string(tee.feeds.size()) + " branches of " +
                                 quoted_name(tee) + (direct.size() == 1 ? " has" : " have") +
                                 " no queue, the first begins with " + quoted_name(*next);
        const std::string change = tee.name + ". ! queue ! " + pipeline.launch_text(*next);
        if (waiting > 1) {
            e.problem(text + "; their sinks wait for each other for ever", change, "no-queue");
        } else {
            e.note(text + (direct.size() > 1 ? "; they hold up each other"
                                             : "; it holds up the others"),
                   change, "no-queue");
        }
    }
}

// The trial's frames lie in plain memory and have a size of their own, whatever the user's source
// gives.
bool depends_on_source(const PipelineMessage& message) {
    if (message.id == "zones-shape")
        return message.text.find("of units=pixels") != std::string::npos;
    return message.id == "infer-copy-forbidden" && message.found != "input-cpu-view" &&
           message.found != "output-cpu-view";
}

bool has_test_source(const Pipeline& pipeline) {
    return std::ranges::any_of(pipeline.elements,
                               [](const Element& e) { return e.factory == "videotestsrc"; });
}

void messages(Examination& e, const Pipeline& pipeline) {
    const bool ours = std::ranges::any_of(
        pipeline.messages, [](const auto& m) { return m.is_error && !m.id.empty(); });
    std::set<std::string> warned;
    for (const PipelineMessage& m : pipeline.messages) {
        const std::string where = m.factory + " '" + m.element + "': ";
        if (!m.is_error) {
            if (!m.id.empty() && warned.insert(m.element + m.id).second)
                e.note(where + m.text, change_for(pipeline, m), m.id);
        } else if (!m.id.empty() && depends_on_source(m) && !has_test_source(pipeline)) {
            e.note(where + m.text + " (with pictures of a test source; yours may differ)",
                   change_for(pipeline, m), m.id);
        } else if (!m.id.empty()) {
            e.problem(where + m.text, change_for(pipeline, m), m.id);
        } else if (!ours) {
            // An element of others, whose sentence alone says little.
            e.problem(where + m.text + " (" + m.debug.substr(m.debug.rfind('\n') + 1) + ")",
                      "GST_DEBUG=3 gst-launch-1.0 " + pipeline.line, "element");
            return;  // what follows from it
        }
    }
}

void trial(Examination& e, const Pipeline& pipeline) {
    if (pipeline.trial == "timeout")
        e.problem(
            "the part of the pipeline that infers stood still for a minute with test "
            "pictures",
            "GST_DEBUG=vartml*:5 gst-launch-1.0 " + pipeline.line, "standstill");
}

constexpr void (*rules[])(Examination&, const Pipeline&) = {
    faults, sources, imports, lost_metadata, inference_missing, messages, queues, trial, borders,
};

}  // namespace

std::string joined(std::initializer_list<std::string> parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : " ! ") + part;
    return text;
}

void apply_pipeline_rules(Examination& e, const Pipeline& pipeline) {
    for (const auto rule : rules) rule(e, pipeline);
}

}  // namespace vartml::doctor
