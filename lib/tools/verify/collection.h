// SPDX-License-Identifier: Apache-2.0
// Every ONNX model of a folder: does it compile, and does it give what ONNX Runtime gives? Whatever
// a model does, it does in child processes with limits, so that it is a row and not the end.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/reference.h"

namespace vartml::verify {

// Of one way to compute.
struct Verdict {
    // none: it was not come to; unclear: the reference is too far from itself to judge any.
    enum class State { none, agrees, differs, unclear, fails };
    State state = State::none;
    std::string text;    // how near, what differs, or why it fails
    double seconds = 0;  // of a run
};

struct ModelRow {
    std::string name;      // path below the folder
    std::string key;       // of everything that the row depends on, but for `build`
    std::string build;     // of the programs that made it
    std::string limits;    // within which it was made; more of them may make a miss good
    bool is_kept = false;  // of an earlier call

    bool reference_runs = false;
    std::string reference_text;  // why not
    bool is_unfed = false;       // not run, though loaded: shapes or numbers made here are at fault

    enum class Compiled { no, at_once, followed };  // `followed`: with the option that we asked for
    Compiled compiled = Compiled::no;
    bool is_refused = false;   // not compiled, with a sentence that says why
    std::string option;        // the option that was followed
    std::string compile_text;  // why not
    double compile_seconds = 0;

    Verdict f32, standard;

    bool is_good() const {
        return compiled != Compiled::no && f32.state == Verdict::State::agrees &&
               standard.state == Verdict::State::agrees;
    }
    std::string_view reference_word() const {
        return reference_runs ? "runs" : is_unfed ? "unfed" : "refuses";
    }
    // One short sentence, "" where there is nothing to say.
    std::string reason() const;
};

struct NamedPicture {
    std::string name;
    PictureData data;
};

struct CollectionRequest {
    std::string folder;
    std::vector<std::string> only;  // parts of names; empty = all
    std::string program;            // `vartml`
    std::string results;            // the file that rows are kept in
    enum class Again { changed, misses, all } again = Again::changed;
    int64_t picture_side = 320;          // of pictures whose size the model leaves open
    std::vector<NamedPicture> pictures;  // what picture inputs get in turn; none = a made scene
    Limits limits;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const std::vector<std::string>& names)> begin;
    std::function<void(const ModelRow&)> row;
};

struct Collection {
    std::string folder, reference;  // "1.30.0"
    std::vector<ModelRow> rows;     // by name
    bool is_complete = false;       // false: interrupted
    // Those that ONNX Runtime runs agree, some do, and none of the others ended without a sentence.
    bool all_good() const;
    bool is_compared() const;  // ONNX Runtime runs some
};

// Errors: not_found where there is no ONNX Runtime, folder or model; io.
Result<Collection> verify_collection(const CollectionRequest& request);

// A collection as a table and as JSON, which is also where rows are kept between calls.

// The heading of a table over models of these names, and a line of it.
std::string table_heading(const std::vector<std::string>& names);
std::string table_line(const ModelRow& row, const std::vector<std::string>& names);
// Counts and percentages over the models that ONNX Runtime runs, and what it refuses apart.
std::string summary_text(const Collection& collection);

std::string json_text(const Collection& collection);
// The rows of a file that json_text made; none of a file of another form. Errors: bad_model for
// what is no JSON.
struct RecordedRows {
    std::string folder;  // of the models
    std::vector<ModelRow> rows;
};
Result<RecordedRows> rows_of_json(const std::string& text);

// One model of a collection through all its steps.

// Fills everything but `name`, `key` and `build`. Errors: io, for what is not the model's fault.
Result<void> verify_model(const CollectionRequest& request, const OnnxRuntime& reference,
                          const std::string& model, ModelRow& row);

// The value of the option --input-shape that a refusal recommends, such as "x:1,3,<height>,640", or
// "".
std::string recommended_shape(const std::string& refusal);

}  // namespace vartml::verify
