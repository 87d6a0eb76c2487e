// SPDX-License-Identifier: Apache-2.0
// Turns what a call of the vart API throws into an Error, so that nothing reaches a GLib callback.
#pragma once
#include <new>
#include <stdexcept>

#include <vartml/result.h>

namespace vartml::gst {

template <typename Call>
auto guarded(Call&& call) -> vartml::Result<decltype(call())> {
    using vartml::ErrorCode;
    try {
        return call();
    } catch (const std::invalid_argument& e) {
        return vartml::Error{ErrorCode::invalid_argument, e.what()};
    } catch (const std::bad_alloc&) {
        return vartml::Error{ErrorCode::out_of_memory, "the runtime found no memory"};
    } catch (const std::exception& e) {
        return vartml::Error{ErrorCode::device, e.what()};
    } catch (...) {
        return vartml::Error{ErrorCode::internal,
                             "the runtime threw something that is no std::exception"};
    }
}

}  // namespace vartml::gst
