// SPDX-License-Identifier: Apache-2.0
// Models that are imported from a folder of their own.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/compile/onnx/import.h"
#include "lib/graph/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::onnx {

using test::TempDir;
using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

class Import : public testing::Test {
protected:
    Result<Imported> run(const TinyOnnx& model, const ImportOptions& options = {}) {
        model.save(path_);
        return import_onnx(path_, options);
    }
    Imported good(const TinyOnnx& model, const ImportOptions& options = {}) {
        auto result = run(model, options);
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        const auto verified = graph::verify(result->graph);
        EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
        return std::move(*result);
    }
    // The sentence without the path of the folder.
    std::string refusal(const TinyOnnx& model, const ImportOptions& options = {}) {
        const auto result = run(model, options);
        return result ? "imported" : local(result.error().message);
    }
    std::string local(std::string text) const {
        for (size_t at; (at = text.find(folder_.path() + '/')) != std::string::npos;)
            text.erase(at, folder_.path().size() + 1);
        return text;
    }
    static std::vector<std::string> kinds(const graph::Graph& graph) {
        std::vector<std::string> out;
        for (const auto& node : graph.nodes) out.push_back(node.kind);
        return out;
    }

    TempDir folder_;
    std::string path_ = folder_ / "model.onnx";
};
using Kinds = std::vector<std::string>;

}  // namespace vartml::onnx
