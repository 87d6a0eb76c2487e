// SPDX-License-Identifier: Apache-2.0
// What a user is told where XRT's memory cannot be had: XRT's own library without a device, a
// module that is not there, a library that is none.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lib/run/memory/xrt_memory.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

std::string refusal() {
    const auto memory = runtime::xrt_memory(0);
    return memory ? "" : memory.error().message;
}

// Applications that use no XRT pay nothing for it, and no pointer of theirs is taken for an
// xrt::bo.
TEST(XrtLibrary, IsNotLoadedForAPointer) {
    int number = 0;
    const auto memory = runtime::wrap_xrt_bo(&number);
    ASSERT_TRUE(memory);
    EXPECT_EQ(*memory, nullptr);
    EXPECT_EQ(dlopen("libxrt_coreutil.so.2", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

// Failures first: what was loaded stays loaded.
TEST(XrtLibrary, IsExplainedWhereItCannotBeUsed) {
    const std::string module = std::getenv("VARTML_XRT_MODULE");
    const TempDir dir;
    spill(dir / "text.so", "no module");
    setenv("VARTML_XRT_MODULE", (dir / "none.so").c_str(), 1);
    EXPECT_NE(refusal().find("none.so: cannot open shared object file"), std::string::npos)
        << refusal();
    setenv("VARTML_XRT_MODULE", (dir / "text.so").c_str(), 1);
    EXPECT_NE(refusal().find("build this package with the XRT that is installed"),
              std::string::npos)
        << refusal();
    setenv("VARTML_XRT_MODULE", module.c_str(), 1);
    if (std::filesystem::exists("/dev/accel/accel0")) GTEST_SKIP() << "an NPU is here";
    EXPECT_TRUE(refusal().starts_with("XRT cannot open device 0: ")) << refusal();
    EXPECT_NE(refusal().find("xdna_device_index"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace vartml::test
