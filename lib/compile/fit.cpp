// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "lib/compile/patches.h"
#include "lib/compile/round_weights.h"
#include "lib/compile/stored.h"
#include "lib/graph/numbers.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr size_t most_samples = 32;  // on which both models are run for each stage
// Patches of a product, over all samples.
constexpr size_t fewest_patches = 4096, most_patches = 16384;
// Longer rows would take minutes.
constexpr size_t longest_row = 2400;
// How far weights may follow what the samples say, as a part of the mean variance of what they
// read: at least so much, and more where patches are few for the length of a row.
constexpr double rounding_ridge = 0.01, rounding_ridge_of_few = 1;

struct Product {
    size_t node = 0;
    Patches patches;
    std::vector<Moments> moments;  // per group
    size_t exact_output = 0, found_output = 0;
};

size_t patches_wanted(const Patches& patches) {
    return std::clamp(8 * patches.size(), fewest_patches, most_patches);
}

// The position of a value among the outputs of a graph, where it is put if it is not there.
size_t output_of(Graph& graph, ValueId id) {
    const auto found = std::ranges::find(graph.outputs, id);
    const auto at = static_cast<size_t>(found - graph.outputs.begin());
    if (found == graph.outputs.end()) graph.outputs.push_back(id);
    return at;
}

class Fitter {
public:
    Fitter(const Graph& graph, const Statistics& statistics,
           const std::set<std::string>& kept_float, const RunBoth& run)
        : graph_(graph), statistics_(statistics), kept_float_(kept_float), run_(run) {
        for (const size_t i : products_to_quantise(graph, kept_float)) is_int8_.insert(i);
    }

    Result<Fits> run() {
        std::vector<Product> products;
        for (size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            auto patches = Patches::create(graph_, node);
            const ValueId input = patches ? node.inputs[0] : graph::none;
            // What the model is given has no sums to make up for.
            const bool is_given = std::ranges::find(graph_.inputs, input) != graph_.inputs.end();
            if (!patches || patches->size() > longest_row || (is_given && !is_int8_.contains(i)) ||
                graph_.value(input).type.data_type != DataType::float32)
                continue;
            products.push_back({i, *std::move(patches), {}, 0, 0});
        }
        for (size_t first = 0; first < products.size();) {
            const size_t end = end_of_stage(products, first);
            if (auto done = fit(std::span(products).subspan(first, end - first)); !done)
                return done.error();
            for (size_t i = first; i < end; ++i) products[i].moments.clear();
            first = end;
        }
        return std::move(fits_);
    }

private:
    // Products that are fitted at once: none reads what another one changes. Else what is made up
    // for in one would be made up for in the next, too.
    size_t end_of_stage(std::span<const Product> products, size_t first) const {
        std::vector<bool> changes(graph_.values.size(), false);
        size_t next = first;
        for (size_t i = products[first].node; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            const bool reads = std::ranges::any_of(node.inputs, [&](ValueId id) {
                return id != graph::none && changes[static_cast<size_t>(id)];
            });
            const bool is_next = next < products.size() && products[next].node == i;
            if (is_next && reads) return next;
            if (is_next) ++next;
            for (const ValueId id : node.outputs)
                if (id != graph::none) changes[static_cast<size_t>(id)] = reads || is_next;
        }
        return next;
    }

    Result<void> fit(std::span<Product> products) {
        Graph exact = graph_, found = graph_;
        auto done = quantise(found, statistics_, kept_float_, fits_);
        if (!done) return done.error();
        exact.outputs.clear();
        found.outputs.clear();
        for (Product& product : products) {
            const Node& node = graph_.nodes[product.node];
            const auto same = std::ranges::find(found.nodes, node.name, &Node::name);
            if (same == found.nodes.end()) return {};
            product.found_output = output_of(found, same->inputs[0]);
            product.moments.assign(product.patches.groups(), Moments(product.patches.size()));
            const bool is_given =
                std::ranges::find(graph_.inputs, node.inputs[0]) != graph_.inputs.end();
            product.exact_output = is_given ? SIZE_MAX : output_of(exact, node.inputs[0]);
        }
        if (exact.outputs.empty()) exact.outputs = graph_.outputs;
        graph::remove_dead(exact);
        graph::remove_dead(found);
        auto ran = run_(std::move(exact), std::move(found), most_samples,
                        [&](const Outputs& e, const Outputs& f, size_t sample, size_t samples) {
                            for (Product& product : products) add(product, e, f, sample, samples);
                        });
        if (!ran) return ran;
        for (Product& product : products) finish(product);
        return {};
    }

    static void add(Product& product, const Outputs& exact, const Outputs& found, size_t sample,
                    size_t samples) {
        const Patches& p = product.patches;
        const auto read = [&](std::span<const float> tensor) {
            return p.read(tensor, patches_wanted(p) / samples + 1, sample);
        };
        const std::vector<float> f = read(found[product.found_output]);
        const std::vector<float> e =
            product.exact_output == SIZE_MAX ? f : read(exact[product.exact_output]);
        const size_t stride = p.groups() * p.size();
        if (e.size() != f.size()) return;
        for (size_t g = 0; g < p.groups(); ++g)
            product.moments[g].add(e.data() + g * p.size(), f.data() + g * p.size(),
                                   f.size() / stride, stride);
    }

    void finish(const Product& product) {
        const Node& node = graph_.nodes[product.node];
        const Patches& p = product.patches;
        const bool is_int8 = is_int8_.contains(product.node);
        const auto numbers = graph::read_numbers<float>(graph_.value(node.inputs[1]));
        const std::vector<float> given = p.rows_of(numbers);
        std::vector<float> rows;
        std::vector<int8_t> codes;
        Fit fit;
        const size_t outputs = p.outputs() / p.groups();
        for (size_t g = 0; g < p.groups(); ++g) {
            const Moments& moments = product.moments[g];
            if (!(moments.count() > 0)) return;
            const auto first = given.begin() + static_cast<ptrdiff_t>(g * outputs * p.size());
            const std::vector<double> old(first,
                                          first + static_cast<ptrdiff_t>(outputs * p.size()));
            std::vector<double> best = old;
            const double few = static_cast<double>(p.size()) / moments.count();
            std::vector<double> covariance = moments.covariance();
            add_ridge(covariance, p.size(), rounding_ridge + rounding_ridge_of_few * few);
            const Factors factors = factorise(covariance, p.size());
            const auto exact_means = moments.exact_means(), found_means = moments.found_means();
            for (size_t o = 0; o < outputs; ++o) {
                const std::span<double> row = std::span(best).subspan(o * p.size(), p.size());
                if (is_int8) {
                    const RoundedRow rounded = round_row(row, covariance, factors);
                    codes.insert(codes.end(), rounded.codes.begin(), rounded.codes.end());
                    fit.scales.push_back(rounded.scale);
                    for (size_t i = 0; i < row.size(); ++i)
                        row[i] = static_cast<double>(static_cast<float>(rounded.codes[i]) *
                                                     rounded.scale);
                }
                double missing = 0;
                for (size_t i = 0; i < row.size(); ++i)
                    missing += old[o * p.size() + i] * exact_means[i] -
                               static_cast<double>(static_cast<float>(row[i])) * found_means[i];
                fit.bias.push_back(missing);
                for (const double weight : row) rows.push_back(static_cast<float>(weight));
            }
        }
        fit.weights = p.weights_of<float>(rows);
        fit.codes = p.weights_of<int8_t>(codes);
        fits_[node.name] = std::move(fit);
    }

    const Graph& graph_;
    const Statistics& statistics_;
    const std::set<std::string>& kept_float_;
    const RunBoth& run_;
    std::set<size_t> is_int8_;
    Fits fits_;
};

}  // namespace

Result<Fits> fit_to_float(const Graph& graph, const Statistics& statistics,
                          const std::set<std::string>& kept_float, const RunBoth& run) {
    return Fitter(graph, statistics, kept_float, run).run();
}

std::string write_fits(const Fits& fits) {
    Writer writer;
    writer.number(uint64_t{fits.size()});
    for (const auto& [name, fit] : fits) {
        writer.text(name);
        writer.list(fit.weights);
        writer.list(fit.codes);
        writer.list(fit.scales);
        writer.list(fit.bias);
    }
    return writer.take();
}

std::optional<Fits> read_fits(std::string_view bytes) {
    Reader reader(bytes);
    Fits fits;
    const auto count = reader.number<uint64_t>();
    for (uint64_t i = 0; i < count && reader.is_good(); ++i) {
        Fit& fit = fits[reader.text()];
        fit.weights = reader.list<float>();
        fit.codes = reader.list<int8_t>();
        fit.scales = reader.list<float>();
        fit.bias = reader.list<double>();
    }
    return reader.is_done() ? std::optional(std::move(fits)) : std::nullopt;
}

}  // namespace vartml::compiler
