// SPDX-License-Identifier: Apache-2.0
// Runs a test once for each instruction set that this processor has.
#pragma once
#include <string>

#include <gtest/gtest.h>

#include "hwy/targets.h"

namespace vartml::kernels {

class OnEachTarget : public testing::TestWithParam<int64_t> {
protected:
    void SetUp() override { use(GetParam()); }
    void TearDown() override { use(0); }

private:
    static void use(int64_t targets) {  // 0 = all that the processor has
        hwy::SetSupportedTargetsForTest(targets);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
};

inline std::string target_name(const testing::TestParamInfo<int64_t>& info) {
    return hwy::TargetName(info.param);
}

}  // namespace vartml::kernels

// The one macro: GoogleTest names suites by token.
#define VARTML_ON_EACH_TARGET(suite)                                                 \
    INSTANTIATE_TEST_SUITE_P(Targets, suite,                                         \
                             testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
                             vartml::kernels::target_name)
