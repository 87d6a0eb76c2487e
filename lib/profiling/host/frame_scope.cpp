// SPDX-License-Identifier: Apache-2.0
// Which frames the next run on this thread is of.
#include <utility>

#include <vartml/profile.h>

namespace vartml {
namespace {

constinit thread_local FrameScope* innermost = nullptr;

}  // namespace

FrameScope::FrameScope(std::span<const TraceFrame> frames) noexcept
    : frames_(frames), outer_(std::exchange(innermost, this)) {}
FrameScope::~FrameScope() {
    innermost = outer_;
}

std::span<const TraceFrame> FrameScope::take() noexcept {
    if (!innermost) return {};
    return std::exchange(innermost->frames_, {});
}

}  // namespace vartml
