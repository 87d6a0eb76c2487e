// SPDX-License-Identifier: Apache-2.0
// All public headers of namespace vartml, and what holds for each of them.
#pragma once

/// Ownership: pointers, spans and string views are borrowed for the call, unless a declaration says
/// how long they must live; what is returned by value belongs to the caller.
///
/// Units: sizes and strides are bytes, times are nanoseconds, angles are radians, coordinates are
/// pixels of the frame, and scores lie in 0...1, unless the name says another unit. Zero in an
/// option means its default.
///
/// Errors: a function that can fail returns Result (result.h): a code for the program and one
/// sentence for a person. A failed call leaves its arguments and the object as they were. No
/// function throws, except where memory for small things is at its end (`std::bad_alloc`).
///
/// Threads: objects may be used by one thread at a time, const members by several; a class that
/// promises more says so in the line that begins with "Thread-safety:". Free functions may be
/// called by any thread.
#include <vartml/compile.h>
#include <vartml/convert.h>
#include <vartml/log.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <vartml/processors.h>
#include <vartml/profile.h>
#include <vartml/publish.h>
#include <vartml/publish_broker.h>
#include <vartml/result.h>
#include <vartml/tensor.h>
#include <vartml/track.h>
#include <vartml/version.h>
