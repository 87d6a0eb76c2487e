// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/int8_model.h"

#include <algorithm>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/compile/equalise.h"
#include "lib/compile/stored.h"
#include "lib/graph/text.h"

namespace vartml::compiler {
namespace {

using graph::Graph;

std::string digest_of(const Graph& graph) {
    Sha256 hash;
    hash.update(as_bytes(graph::print(graph)));
    for (const graph::Value& value : graph.values)
        if (value.constant) hash.update(value.constant->bytes);
    return to_hex(hash.finish());
}
std::string digest_of(const Statistics& statistics) {
    Writer writer;
    write(writer, statistics);
    return to_hex(sha256(as_bytes(writer.take())));
}

class Maker {
public:
    Maker(Graph& graph, const QuantiseRequest& request, const MakeTrial& make_trial)
        : graph_(graph), request_(request), make_trial_(make_trial) {}

    Result<Int8Choice> run() {
        if (auto done = prepare_to_quantise(graph_); !done) return done.error();
        if (auto done = measure(); !done) return done.error();
        if (equalise(graph_, statistics_) != 0)
            if (auto done = measure(); !done) return done.error();
        if (request_.run_both)
            if (auto done = fit(); !done) return done.error();
        if (request_.judge && !fits_.empty())
            if (auto done = drop_worse_fits(); !done) return done.error();
        if (request_.judge && request_.target.value_or(1) > 0) {
            auto chosen = choose_floats(
                graph_, request_.target,
                {.all_but = [&](const auto& kept) { return judge_all_but(kept); },
                 .codes_at = [&](const auto& values) { return judge_codes_at(values); }});
            if (!chosen) return chosen.error();
            kept_float_ = std::move(*chosen);
            if (!kept_float_.empty() && !fits_.empty())
                if (auto done = fit(); !done) return done.error();
        }
        auto share = quantise(graph_, statistics_, kept_float_, fits_);
        if (!share) return share.error();
        return Int8Choice{*share, std::move(kept_float_)};
    }

private:
    // The graph with the tensors to measure as outputs, behind its own.
    Result<void> measure() {
        Graph probe = graph_;
        for (const graph::ValueId id : values_to_quantise(probe)) {
            const auto is_it = [id](graph::ValueId other) { return other == id; };
            const bool at_border = std::ranges::any_of(probe.outputs, is_it) ||
                                   std::ranges::any_of(probe.inputs, is_it);
            if (!at_border) probe.outputs.push_back(id);
        }
        auto model = make_trial_(std::move(probe), true);
        if (!model) return model.error();
        auto measured = request_.measure(*model, graph_.outputs.size());
        if (!measured) return measured.error();
        statistics_ = std::move(*measured);
        return {};
    }

    Result<void> run_both(Graph exact, Graph found, size_t most_samples, const Take& take) const {
        auto a = make_trial_(std::move(exact), false);
        if (!a) return a.error();
        auto b = make_trial_(std::move(found), false);
        if (!b) return b.error();
        return request_.run_both(*a, *b, most_samples, take);
    }

    // For what is kept in floats now.
    Result<void> fit() {
        const auto make = [&]() -> Result<std::string> {
            auto fitted = fit_to_float(
                graph_, statistics_, kept_float_,
                [&](Graph exact, Graph found, size_t most_samples, const Take& take) {
                    return run_both(std::move(exact), std::move(found), most_samples, take);
                });
            if (!fitted) return fitted.error();
            return write_fits(*fitted);
        };
        std::string key =
            "fits\n" + request_.set + '\n' + digest_of(graph_) + '\n' + digest_of(statistics_);
        for (const std::string& name : kept_float_) key += '\n' + name;
        auto bytes = request_.remember ? request_.remember(key, make) : make();
        if (!bytes) return bytes.error();
        auto fits = read_fits(*bytes);
        if (!fits) {  // another build of this version kept something else
            bytes = make();
            if (!bytes) return bytes.error();
            fits = read_fits(*bytes);
        }
        if (fits) fits_ = *std::move(fits);
        return {};
    }

    // Least squares are about what is there most of the time, a picture's background: where what
    // matters is rare, weights that are rounded one by one may agree better.
    Result<void> drop_worse_fits() {
        auto fitted = judge_all_but({});
        if (!fitted) return fitted.error();
        Fits fits;
        std::swap(fits, fits_);
        auto plain = judge_all_but({});
        if (!plain) return plain.error();
        const auto quality = [](const Verdict& v) { return std::pair(v.agreement, -v.loss); };
        if (quality(*plain) <= quality(*fitted)) std::swap(fits, fits_);
        return {};
    }

    Result<Verdict> judge(Graph trial) const {
        auto model = make_trial_(std::move(trial), true);
        return model ? request_.judge(*model) : model.error();
    }
    Result<Verdict> judge_all_but(const std::set<std::string>& kept) const {
        Graph trial = graph_;
        // Fits are for what a product reads where all is int8; one that is kept may read better.
        Fits fits = fits_;
        for (const std::string& name : kept) fits.erase(name);
        auto done = quantise(trial, statistics_, kept, fits);
        return done ? judge(std::move(trial)) : done.error();
    }
    Result<Verdict> judge_codes_at(const std::vector<graph::ValueId>& values) const {
        Graph trial = graph_;
        auto done = quantise_tensors(trial, statistics_, values);
        return done ? judge(std::move(trial)) : done.error();
    }

    Graph& graph_;
    const QuantiseRequest& request_;
    const MakeTrial& make_trial_;
    Statistics statistics_;
    Fits fits_;
    std::set<std::string> kept_float_;
};

}  // namespace

Result<Int8Choice> make_int8(Graph& graph, const QuantiseRequest& request,
                             const MakeTrial& make_trial) {
    return Maker(graph, request, make_trial).run();
}

}  // namespace vartml::compiler
