// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/functions.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <utility>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/inliner/inliner.h>
#pragma GCC diagnostic pop

#include "lib/base/text.h"
#include "lib/compile/onnx/check.h"

namespace vartml::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<pb::NodeProto>;
using Key = std::array<std::string, 3>;  // domain, name and overload

Key key_of(const pb::FunctionProto& f) {
    return {short_domain(f.domain()), f.name(), f.overload()};
}
Key key_of(const pb::NodeProto& call) {
    return {short_domain(call.domain()), call.op_type(), call.overload()};
}

// Every node of the list and of the bodies in it.
template <typename F>
void for_each_node(const Nodes& nodes, F&& f) {
    for (const auto& node : nodes) {
        f(node);
        for (const auto& a : node.attribute()) {
            if (a.has_g()) for_each_node(a.g().node(), f);
            for (const auto& g : a.graphs()) for_each_node(g.node(), f);
        }
    }
}

template <typename F>
void for_each_node(Nodes& nodes, F&& f) {
    for (auto& node : nodes) {
        f(node);
        for (auto& a : *node.mutable_attribute()) {
            if (a.has_g()) for_each_node(*a.mutable_g()->mutable_node(), f);
            for (auto& g : *a.mutable_graphs()) for_each_node(*g.mutable_node(), f);
        }
    }
}

std::set<Key> keys_of(const Nodes& nodes) {
    std::set<Key> keys;
    for_each_node(nodes, [&](const pb::NodeProto& node) { keys.insert(key_of(node)); });
    return keys;
}

void remove_uncalled(pb::ModelProto& model) {
    std::map<Key, const pb::FunctionProto*> functions;
    for (const auto& f : model.functions()) functions[key_of(f)] = &f;
    std::set<Key> called;
    std::vector<const Nodes*> open{&model.graph().node()};
    while (!open.empty()) {
        const Nodes& nodes = *open.back();
        open.pop_back();
        for (const Key& key : keys_of(nodes))
            if (const auto found = functions.find(key);
                found != functions.end() && called.insert(key).second)
                open.push_back(&found->second->node());
    }
    auto& list = *model.mutable_functions();
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](const auto& f) { return !called.contains(key_of(f)); }),
               list.end());
}

// The inliner is told which functions to inline by domain and name alone, so that one of a name
// that has overloads gets a name of its own.
void name_overloads(pb::ModelProto& model) {
    std::set<Key> taken;
    for (const auto& f : model.functions()) taken.insert(key_of(f));
    std::map<Key, std::string> names;
    for (auto& f : *model.mutable_functions()) {
        if (f.overload().empty()) continue;
        std::string name = f.name() + ':' + f.overload();
        while (!taken.insert({short_domain(f.domain()), name, ""}).second) name += '_';
        names[key_of(f)] = name;
        f.set_name(std::move(name));
        f.clear_overload();
    }
    if (names.empty()) return;
    const auto rename = [&](pb::NodeProto& call) {
        const auto found = names.find(key_of(call));
        if (found == names.end()) return;
        call.set_op_type(found->second);
        call.clear_overload();
    };
    for_each_node(*model.mutable_graph()->mutable_node(), rename);
    for (auto& f : *model.mutable_functions()) for_each_node(*f.mutable_node(), rename);
}

// A model has the operator sets that its functions have, and that its own nodes do not use.
void adopt_operator_sets(pb::ModelProto& model) {
    std::set<std::string> there;
    for_each_node(std::as_const(*model.mutable_graph()->mutable_node()),
                  [&](const pb::NodeProto& node) { there.insert(domain_of(node)); });
    for (const auto& set : model.opset_import()) there.insert(short_domain(set.domain()));
    for (const auto& f : model.functions())
        for (const auto& set : f.opset_import())
            if (there.insert(short_domain(set.domain())).second) *model.add_opset_import() = set;
}

// The inliner takes functions of the model's operator sets. Where all that a function uses means
// the same in both, it takes the model's.
Result<void> share_operator_sets(const std::string& file, pb::ModelProto& model) {
    std::set<Key> functions;
    for (const auto& f : model.functions()) functions.insert(key_of(f));
    std::map<std::string, int64_t> versions;
    for (const auto& set : model.opset_import())
        versions[short_domain(set.domain())] = set.version();
    const auto number = [](int64_t version) {
        return static_cast<int>(std::clamp<int64_t>(version, 0, std::numeric_limits<int>::max()));
    };
    for (auto& f : *model.mutable_functions())
        for (auto& set : *f.mutable_opset_import()) {
            const std::string domain = short_domain(set.domain());
            const int64_t wanted = versions.try_emplace(domain, set.version()).first->second;
            if (wanted == set.version()) continue;
            const pb::NodeProto* other = nullptr;
            for_each_node(f.node(), [&](const pb::NodeProto& node) {
                if (!other && domain_of(node) == domain && !functions.contains(key_of(node)) &&
                    !is_as_in(node, number(set.version()), number(wanted)))
                    other = &node;
            });
            if (other)
                return Error{ErrorCode::unsupported,
                             file + ": its function '" + printable(f.domain() + "::" + f.name()) +
                                 "' is of operator set " + std::to_string(set.version()) + " of " +
                                 (domain.empty() ? "ai.onnx" : printable(domain)) +
                                 ", the rest of set " + std::to_string(wanted) + ", and " +
                                 printable(operator_name(*other)) + " of its node '" +
                                 printable(node_name(*other)) +
                                 "' differs between them; export all of the model with one set"};
            set.set_version(wanted);
        }
    return {};
}

// The inliner knows a tensor by one name: an output that is an input too, or an output already,
// gets a node that makes it.
void make_outputs(pb::FunctionProto& f) {
    std::set<std::string> made(f.input().begin(), f.input().end()), taken = made;
    for (const auto& node : f.node()) taken.insert(node.output().begin(), node.output().end());
    for (std::string& output : *f.mutable_output()) {
        if (made.insert(output).second) continue;
        std::string name = output;
        while (!taken.insert(name).second) name += '_';
        auto* node = f.add_node();
        node->set_op_type("Identity");
        node->add_input(output);
        node->add_output(name);
        output = std::move(name);
    }
}

// The attributes that functions have values for.
using Defaults = std::map<Key, google::protobuf::RepeatedPtrField<pb::AttributeProto>>;

// Gives calls the attributes that they leave out: the inliner would leave them out of the nodes
// inside.
void give_defaults(const Defaults& defaults, Nodes& nodes) {
    for_each_node(nodes, [&](pb::NodeProto& node) {
        const auto found = defaults.find(key_of(node));
        if (found == defaults.end()) return;
        for (const auto& fallback : found->second) {
            const auto same = [&](const auto& a) { return a.name() == fallback.name(); };
            if (std::ranges::none_of(node.attribute(), same)) *node.add_attribute() = fallback;
        }
    });
}

// The functions that no other one calls.
::onnx::inliner::FunctionIdVector outermost(const pb::ModelProto& model) {
    std::set<Key> inner;
    for (const auto& f : model.functions()) inner.merge(keys_of(f.node()));
    ::onnx::inliner::FunctionIdVector ids;
    for (const auto& f : model.functions())
        if (!inner.contains(key_of(f))) ids.emplace_back(f.domain(), f.name());
    return ids;
}

void inline_all(pb::ModelProto& model) {
    Defaults defaults;
    for (const auto& f : model.functions())
        if (f.attribute_proto_size() != 0) defaults[key_of(f)] = f.attribute_proto();
    if (defaults.empty()) return ::onnx::inliner::InlineLocalFunctions(model);
    // A call inside may hand on an attribute that its function is not given: whether it has one is
    // known once that function is inlined.
    while (model.functions_size() != 0) {
        give_defaults(defaults, *model.mutable_graph()->mutable_node());
        ::onnx::inliner::InlineSelectedFunctions(
            model, *::onnx::inliner::FunctionIdSet::Create(outermost(model)));
    }
}

}  // namespace

Result<void> inline_functions(const std::string& file, pb::ModelProto& model) {
    if (model.functions_size() == 0) return {};
    if (auto good = check_functions(file, model); !good) return good;
    remove_uncalled(model);
    name_overloads(model);
    adopt_operator_sets(model);
    if (auto good = share_operator_sets(file, model); !good) return good;
    for (auto& f : *model.mutable_functions()) make_outputs(f);
    try {
        inline_all(model);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model,
                     file + ": " +
                         printable(std::string("its functions cannot be inlined: ") + e.what(),
                                   std::string::npos)};
    }
    return {};
}

}  // namespace vartml::onnx
