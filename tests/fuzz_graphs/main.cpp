// SPDX-License-Identifier: Apache-2.0
// Random ONNX graphs through compiler and runner, beside the plain loops and ONNX Runtime.
//
// usage: fuzz_graphs [--count N] [--seconds N] [--seed N] [--out FOLDER] [--again FOLDER]
//   --count N      graphs, of the seeds from --seed on; 200
//   --seconds N    ends after that time, whatever the count
//   --seed N       the first seed; 1
//   --out FOLDER   each failure is kept there: FOLDER/<seed> with model.onnx, test_data_set_0 and
//                  text, cut down to what is needed for it
//   --again FOLDER checks a model that was kept, in this process
// Prints a line per failure, then what was refused and how often, and ends with `N passed, N
// failed, N skipped`; skipped is what is refused and what rounding decides. Exit status: 0, 1 for a
// failure.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/fuzz_graphs/check.h"
#include "tests/fuzz_graphs/draft.h"
#include "tests/fuzz_graphs/isolated.h"
#include "tests/fuzz_graphs/reduce.h"
#include "tests/support/temp_dir.h"

namespace vartml::fuzz_graphs {
namespace {

namespace fs = std::filesystem;
constexpr unsigned most_seconds = 120;  // for one graph
constexpr size_t most_listed = 40;

struct Options {
    int64_t count = 200, seconds = 0;
    uint64_t seed = 1;
    std::string out, again;
};

// A sentence without what differs from graph to graph: names and numbers.
std::string reason(const std::string& sentence) {
    std::string text;
    bool quoted = false;
    for (size_t i = 0; i < sentence.size(); ++i) {
        const char c = sentence[i];
        if (c == '\'') quoted = !quoted;
        if (quoted && c != '\'') continue;
        if (c >= '0' && c <= '9') {
            if (text.empty() || text.back() != '#') text += '#';
            continue;
        }
        text += c;
    }
    const size_t folder = text.rfind(".onnx: ");
    return folder == std::string::npos ? text : text.substr(folder + 7);
}

// Kinds of the nodes: graphs of the same kinds have the same fault, most often.
std::string kinds_of(const Model& model) {
    std::string text;
    for (const auto& node : model.proto.graph().node())
        text += (text.empty() ? "" : "+") + node.op_type();
    return text;
}

class Run {
public:
    Run(const Options& options, const verify::OnnxRuntime* ort) : options_(options), ort_(ort) {}

    int all() {
        const auto begin = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < options_.count; ++i) {
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
            if (options_.seconds > 0 && passed.count() > static_cast<double>(options_.seconds))
                break;
            one(options_.seed + static_cast<uint64_t>(i));
        }
        print();
        return failed_ == 0 ? 0 : 1;
    }

private:
    void one(uint64_t seed) {
        const Isolated drafted = run_isolated(
            [&](const Tell& tell) {
                std::vector<std::string> refusals;
                const auto model = draft_model(seed, temp_ / "draft.onnx", refusals);
                for (const std::string& text : refusals) tell("draft\t" + text);
                if (model) {
                    save(*model, temp_ / "model");
                    tell("drafted\t" + kinds_of(*model));
                }
            },
            most_seconds);
        bool is_drafted = false;
        for (const std::string& line : drafted.lines) {
            if (line.starts_with("draft\t")) ++refusals_["a node: " + reason(line.substr(6))];
            if (line.starts_with("drafted\t")) is_drafted = true;
        }
        if (!drafted.end.empty()) return fail_draft(seed, drafted.end);
        if (!is_drafted) {
            ++empty_;
            return;
        }
        ++graphs_;
        const Model model = load(temp_ / "model");
        const Isolated checked = check(model, {});
        bool unsteady = false;
        std::set<std::string> why_refused;
        std::optional<std::pair<std::string, std::string>> wrong;  // the first: way, what
        for (const std::string& line : checked.lines) {
            const std::vector<std::string> words = split(line);
            if (words[0] == "onnxruntime") ++ort_sentences_[reason(words[2])];
            if (words[0] == "refused") {
                why_refused.insert(reason(words[2]));
                first_refused_.emplace(reason(words[2]),
                                       std::to_string(seed) + ": " + words[1] + ": " + words[2]);
            }
            if (words[0] == "unsteady") unsteady = true;
            if (words[0] == "differs" && !wrong) wrong = {words[1], words[2]};
        }
        for (const std::string& why : why_refused) ++refusals_["a graph: " + why];
        if (!checked.end.empty() && !wrong) wrong = {"", checked.end};
        if (wrong)
            fail(seed, model, *wrong);
        else if (!why_refused.empty())
            ++refused_;
        else if (unsteady)
            ++unsteady_;
        else
            ++passed_;
    }

    static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> words;
        size_t at = 0;
        for (size_t end = 0; (end = line.find('\t', at)) != std::string::npos; at = end + 1)
            words.push_back(line.substr(at, end - at));
        words.push_back(line.substr(at));
        words.resize(3);
        return words;
    }

    Isolated check(const Model& model, const std::string& only) {
        return run_isolated(
            [&](const Tell& tell) {
                Checker checker(temp_.path(), ort_);
                for (const Finding& f : checker.check(model, only)) {
                    static constexpr const char* names[] = {"agrees", "refused", "unsteady",
                                                            "differs"};
                    tell(names[static_cast<size_t>(f.verdict)] + ("\t" + f.way) + "\t" + f.text);
                }
                if (ort_ && only.empty() && !checker.had_onnxruntime())
                    tell("onnxruntime\t\t" + checker.onnxruntime_sentence());
            },
            most_seconds);
    }

    void fail_draft(uint64_t seed, const std::string& end) {
        ++failed_;
        std::printf("seed %llu: the plain loops: a node %s\n",
                    static_cast<unsigned long long>(seed), end.c_str());
        if (options_.out.empty()) return;
        const fs::path folder = fs::path(options_.out) / std::to_string(seed);
        fs::create_directories(folder);
        fs::copy_file(temp_ / "draft.onnx", folder / "node.onnx",
                      fs::copy_options::overwrite_existing);
    }

    void fail(uint64_t seed, const Model& model, std::pair<std::string, std::string> wrong) {
        ++failed_;
        Model least = model;
        const auto has_fault = [&](const Model& part) {
            const Isolated again = check(part, wrong.first);
            if (wrong.first.empty()) return !again.end.empty();
            for (const std::string& line : again.lines) {
                const auto words = split(line);
                if (words[0] != "differs" || words[1] != wrong.first) continue;
                wrong.second = words[2];
                return true;
            }
            return false;
        };
        if (auto reference = evaluate(model, temp_ / "node.onnx"); reference)
            least = reduce(model, reference->values, has_fault);
        const std::string what = (wrong.first.empty() ? "" : wrong.first + ": ") + kinds_of(least);
        std::vector<uint64_t>& seeds = faults_[what];
        seeds.push_back(seed);
        if (!options_.out.empty() && seeds.size() <= 3) {
            const std::string folder = options_.out + "/" + std::to_string(seed);
            save(least, folder);
            std::ofstream(folder + "/text") << wrong.first << ": " << wrong.second << "\n"
                                            << describe(least);
        }
        std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(seed), what.c_str(),
                    wrong.second.c_str());
        if (seeds.size() == 1) std::printf("%s", describe(least).c_str());
        std::fflush(stdout);
    }

    static void list(const char* title, const std::map<std::string, int64_t>& counts) {
        if (counts.empty()) return;
        std::multimap<int64_t, std::string, std::greater<>> sorted;
        for (const auto& [text, count] : counts) sorted.emplace(count, text);
        std::printf("%s\n", title);
        size_t lines = 0;
        for (const auto& [count, text] : sorted) {
            if (++lines > most_listed) break;
            std::printf("%6lld  %s\n", static_cast<long long>(count), text.c_str());
        }
    }

    void print() {
        list("refused:", refusals_);
        for (const auto& [why, first] : first_refused_)
            std::printf("        first: seed %s\n", first.c_str());
        list("not in ONNX Runtime, compared with the plain loops alone:", ort_sentences_);
        if (!faults_.empty()) std::printf("faults:\n");
        for (const auto& [what, seeds] : faults_)
            std::printf("%6zu  %s, first seed %llu\n", seeds.size(), what.c_str(),
                        static_cast<unsigned long long>(seeds[0]));
        std::printf(
            "seeds from %llu: %lld graphs, %lld seeds without one, %lld refused, %lld "
            "decided by rounding\n",
            static_cast<unsigned long long>(options_.seed), static_cast<long long>(graphs_),
            static_cast<long long>(empty_), static_cast<long long>(refused_),
            static_cast<long long>(unsteady_));
        keep_figures();
        std::printf("%lld passed, %lld failed, %lld skipped\n", static_cast<long long>(passed_),
                    static_cast<long long>(failed_), static_cast<long long>(refused_ + unsteady_));
    }

    // For `./dev reliability`.
    void keep_figures() {
        const char* folder = std::getenv("VARTML_FIGURES");
        if (!folder) return;
        std::ofstream(std::string(folder) + "/fuzz-graphs.json")
            << "{\"seed\": " << options_.seed << ", \"graphs\": " << graphs_
            << ", \"failed\": " << failed_ << ", \"rounding\": " << unsteady_
            << ", \"refused\": " << refused_ << "}\n";
    }

    const Options& options_;
    const verify::OnnxRuntime* ort_;
    test::TempDir temp_;
    int64_t graphs_ = 0, empty_ = 0, passed_ = 0, failed_ = 0, refused_ = 0, unsteady_ = 0;
    std::map<std::string, int64_t> refusals_, ort_sentences_;
    std::map<std::string, std::string> first_refused_;
    std::map<std::string, std::vector<uint64_t>> faults_;
};

int check_again(const std::string& folder, const verify::OnnxRuntime* ort) {
    const test::TempDir temp;
    const Model model = load(folder);
    std::printf("%s", describe(model).c_str());
    Checker checker(temp.path(), ort);
    checker.prints_steps = true;
    int status = 0;
    for (const Finding& f : checker.check(model)) {
        if (f.verdict == Verdict::differs) status = 1;
        std::printf("%s%s: %s\n", f.verdict == Verdict::unsteady ? "(rounding) " : "",
                    f.way.c_str(), f.text.c_str());
    }
    if (!checker.onnxruntime_sentence().empty())
        std::printf("%s\n", checker.onnxruntime_sentence().c_str());
    return status;
}

int main_program(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string arg = argv[i], value = argv[i + 1];
        if (arg == "--count") options.count = std::atoll(value.c_str());
        if (arg == "--seconds") options.seconds = std::atoll(value.c_str());
        if (arg == "--seed") options.seed = std::strtoull(value.c_str(), nullptr, 10);
        if (arg == "--out") options.out = value;
        if (arg == "--again") options.again = value;
    }
    auto ort = verify::OnnxRuntime::find();
    if (!ort) std::printf("%s\n", ort.error().message.c_str());
    if (!options.again.empty()) return check_again(options.again, ort ? &*ort : nullptr);
    return Run(options, ort ? &*ort : nullptr).all();
}

}  // namespace
}  // namespace vartml::fuzz_graphs

int main(int argc, char** argv) {
    return vartml::fuzz_graphs::main_program(argc, argv);
}
