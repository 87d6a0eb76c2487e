// SPDX-License-Identifier: Apache-2.0
// Starts GStreamer before the tests of an executable; include it once in its file.
#pragma once
#include <gst/gst.h>
#include <gtest/gtest.h>

namespace vartml::test {

class GstEnvironment : public testing::Environment {
public:
    void SetUp() override { gst_init(nullptr, nullptr); }
    void TearDown() override { gst_deinit(); }
};

inline const auto* const gst_environment = testing::AddGlobalTestEnvironment(new GstEnvironment);

}  // namespace vartml::test
