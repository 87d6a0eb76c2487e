// SPDX-License-Identifier: Apache-2.0
// What a partition of ONNX Runtime and the child process that computes it share: two pieces of
// memory and a socket per lane. Both are of one build and on one machine: plain structs.
//
//   descriptor 3  the setup: Setup, a Slot per tensor of the partition's border (inputs, then
//                 outputs), a Session per model with the numbers of its values, the models
//   descriptor 4  the lanes: per lane a Shape per tensor of the border, a Stamp per session, then
//   the
//                 tensors, each dense in its real shape
//   from 5 on     sockets (SOCK_SEQPACKET), one per lane
//
// The child loads everything and sends a Reply on the first socket. Then each byte on a socket is a
// run on that lane, which a Reply ends. It ends itself when the sockets are closed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::onnxruntime {

inline constexpr int setup_fd = 3, lanes_fd = 4, first_socket_fd = 5;
inline constexpr size_t max_rank = 8, alignment = 64;
inline constexpr unsigned max_lanes = 64;

struct Shape {
    uint64_t rank = 0;
    int64_t sizes[max_rank] = {};
};

struct Stamp {
    uint64_t start = 0, end = 0;  // CLOCK_MONOTONIC, ns
};

// A tensor of the border.
struct Slot {
    uint64_t value = 0;           // number of the value
    uint64_t type = 0;            // number of ONNX's TensorProto.DataType
    uint64_t offset = 0;          // of its bytes in a lane
    uint64_t capacity = 0;        // bytes
    uint64_t data_dependent = 0;  // not 0: `shape` is an upper bound
    Shape shape;
};

// An ONNX model, whose inputs and outputs are values by their order.
struct Session {
    uint64_t model_offset = 0, model_size = 0;  // in the setup
    uint64_t values_offset = 0;                 // uint64 each: the inputs, then the outputs
    uint64_t num_inputs = 0, num_outputs = 0;
};

struct Setup {
    uint64_t threads = 0, num_lanes = 0;
    uint64_t num_values = 0, num_inputs = 0, num_outputs = 0, num_sessions = 0;
    uint64_t lane_bytes = 0;
    uint64_t slots_offset = 0, sessions_offset = 0;  // in the setup
};

enum class Status : uint32_t {
    good,
    fault,   // ONNX Runtime refuses; the text is its sentence
    absent,  // there is no ONNX Runtime; the text says where it was looked for
};
struct Reply {
    Status status = Status::good;
    uint32_t session = 0;  // that has the fault
    char text[1016] = {};  // of Status::good after loading: the version
};

inline size_t stamps_offset(const Setup& setup) {
    return (setup.num_inputs + setup.num_outputs) * sizeof(Shape);
}

}  // namespace vartml::onnxruntime
