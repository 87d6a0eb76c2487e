// SPDX-License-Identifier: Apache-2.0
// The pipeline of vartml-detect: from a picture, a video or a camera through a model to lines and
// an annotated file.
#pragma once
#include <gst/gst.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <vartml/result.h>

namespace vartml::gst::detect {

// What `vartml detect` asks for.
struct Request {
    std::string model;  // compiled
    std::string modelinfo, decoder, labels, preprocess, device;
    double threshold = -1;            // -1: the model's
    std::string source, source_kind;  // "file", "camera", "address"
    std::string out,
        format;             // of the annotated file: "jpeg", "png", "mp4", "mkv", "webm"; "": none
    std::string json_file;  // "": none, "-": standard output, in place of the lines
    uint64_t frames = 0;    // 0: all
};

// The source as it may be printed: without the login of a camera.
std::string shown(const Request& request);

// What `vartml` makes of the bytes of a name to send them as JSON, the other way.
std::string bytes_of(const std::string& text);

struct Unref {
    void operator()(gpointer object) const { gst_object_unref(object); }
};
using ElementPtr = std::unique_ptr<GstElement, Unref>;

// The annotated file while it is written: a hidden file beside its place, so that the last good one
// stays until the new one is complete. It is locked while its writer lives; what a killed one left
// is taken away by the next. The destructor removes what was not put in place.
class StagedFile {
public:
    // `place` is a file or nothing yet; behind a symbolic link it is what the link names. Errors:
    // io with the system's reason.
    static Result<StagedFile> create(const std::string& place);
    StagedFile(StagedFile&& other) noexcept
        : place_(std::move(other.place_)),
          path_(std::exchange(other.path_, {})),
          fd_(std::exchange(other.fd_, -1)) {}
    StagedFile& operator=(StagedFile&&) = delete;
    ~StagedFile();
    const std::string& path() const { return path_; }
    // Puts it in place by one rename.
    Result<void> commit();

private:
    StagedFile(std::string place, std::string path, int fd)
        : place_(std::move(place)), path_(std::move(path)), fd_(fd) {}
    std::string place_, path_;
    int fd_ = -1;
};

struct Pipeline {
    ElementPtr element;
    bool is_picture = false;
    bool is_live = false;
    std::optional<StagedFile> written;  // what becomes `out` once it is complete
};

// Errors: invalid_argument (an `out` that does not suit the source), not_found (an element that is
// not installed, with its package), io (a source that cannot be read).
Result<Pipeline> make_pipeline(const Request& request);

// Makes the file that `out` is written into; before the pipeline runs. Errors: io.
Result<void> stage_output(const Request& request, Pipeline& pipeline);

// A pipeline of this text. Errors: not_found (an element that is not installed, with its package).
Result<ElementPtr> parse(const std::string& text);

// The plugins of this very build, beside this program or below the same prefix.
void load_own_plugins();

// A part of it by its name: "source", "infer", "decode", "sink".
ElementPtr part_of(const Pipeline& pipeline, const char* name);

// What an element of ours says, with the options of `vartml detect` in place of its properties.
std::string with_options(std::string text);

// One sentence for an ERROR of the bus. Code bad_model: the model does not fit; else io.
Error sentence_of(const Request& request, GstMessage* message);

}  // namespace vartml::gst::detect
