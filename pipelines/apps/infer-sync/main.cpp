// SPDX-License-Identifier: Apache-2.0
// The shortest way from a picture to numbers: CPU views, plain memory, one blocking call.
//
// The runner converts between the model's own tensors (NCHW float, say) and what the NPU reads, at
// the cost of a copy; see infer-zero-copy for the way without.
//
//     infer-sync MODEL [INPUT]     INPUT: the bytes of all inputs, one after the other
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <vart/vart_runner_factory.hpp>

using vart::NpuTensor;
using vart::TensorDirection;
using vart::TensorType;

// One buffer and one tensor over it for each input (or output). A tensor does not own such a
// buffer: it must live as long as the tensor.
struct Tensors {
    std::vector<std::vector<char>> buffers;
    std::vector<std::vector<NpuTensor>> batch{
        {}};  // [element of the batch][input]: here one element

    Tensors(const vart::Runner& runner, TensorDirection direction) {
        for (const vart::NpuTensorInfo& info :
             runner.get_tensors_info(direction, TensorType::CPU)) {
            info.print();
            // Sizes are always taken from size_in_bytes, never computed from the shape.
            buffers.emplace_back(info.size_in_bytes);
            batch[0].emplace_back(info, static_cast<void*>(buffers.back().data()),
                                  vart::MemoryType::USER_POINTER_NON_CMA);
        }
    }
};

// What most models say last: scores. Shows the largest.
void show(const NpuTensor& output) {
    const vart::NpuTensorInfo& info = output.get_info();
    if (info.data_type != vart::DataType::FLOAT32) {
        std::cout << info.name << ": " << info.size_in_bytes << " bytes of "
                  << vart::to_string(info.data_type) << '\n';
        return;
    }
    const auto* values = static_cast<const float*>(output.get_virtual_address());
    const auto* largest = std::max_element(values, values + info.size);
    std::cout << info.name << ": largest of " << info.size << " is " << *largest << " at "
              << largest - values << '\n';
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: infer-sync MODEL [INPUT]\n";
        return 2;
    }
    try {
        // Everything that can be wrong with a model or an option is said here, as an exception.
        const auto runner = vart::RunnerFactory::create_runner(
            vart::RunnerType::VAIML, argv[1],
            {{"input_tensor_type", "CPU"}, {"output_tensor_type", "CPU"}});
        Tensors inputs(*runner, TensorDirection::INPUT);
        Tensors outputs(*runner, TensorDirection::OUTPUT);

        if (argc > 2) {
            std::ifstream file(argv[2], std::ios::binary);
            for (auto& buffer : inputs.buffers)
                file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
            if (!file) {
                std::cerr << argv[2] << " holds less than the inputs of the model\n";
                return 1;
            }
        }  // without a file: zeros

        // execute() does not throw. The sentence about a failure is in the log and in a property.
        const vart::StatusCode status = runner->execute(inputs.batch, outputs.batch);
        if (status != vart::StatusCode::SUCCESS) {
            std::cerr << vart::to_string(status) << ": "
                      << std::any_cast<std::string>(runner->get_property("last_error")) << '\n';
            return 1;
        }
        for (const NpuTensor& output : outputs.batch[0]) show(output);
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
