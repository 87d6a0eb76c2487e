// SPDX-License-Identifier: Apache-2.0
// Maps of cells as rows of a matrix.
#pragma once
#include "lib/vision/maps.h"

namespace vartml::vision {

// Reads [1,C,h,w] as h*w rows of C columns, [1,A,h,w,C] as A*h*w rows, and [1,N,C] as it is. Keeps
// memory over frames.
class Cells {
public:
    // Valid until the next call and while the tensor's bytes are: in place where the view is dense
    // floats, else of a copy. Errors: bad_model (another rank), unsupported (type or layout).
    Result<Matrix> read(const OutputTensor& tensor);

private:
    FloatView floats_;
};

}  // namespace vartml::vision
