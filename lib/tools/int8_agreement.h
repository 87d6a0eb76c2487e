// SPDX-License-Identifier: Apache-2.0
// How much of what a float model gives an int8 one gives again, over the samples of a set.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <vartml/postprocess.h>

#include "lib/compile/mixed_precision.h"

namespace vartml::tools {

// Of one output. Numbers are compared by their correlation, classes and other whole ones by the
// part that is the same, and where the shape depends on the data that of rows in any order.
class OutputAgreement {
public:
    // `expected`: of the float model, a list of elements per sample.
    OutputAgreement(const TensorInfo& output, std::span<const std::span<const float>> expected);

    // A sample: as many elements each.
    void add(std::span<const float> found, std::span<const float> expected);

    // 1: the same, 0: nothing of it, or a number that is none. Where a tensor has scores, 0 to 1,
    // in channels beside much larger numbers, these count alone, too, by a twentieth of their loss.
    double value() const;
    bool is_whole() const { return is_whole_; }
    double wanted() const;  // of the value, by the kind
    // Whether this is an int8 model that does what the float model does.
    bool is_usual() const;
    // "correlation 0.99987, signal to error 38.1 dB".
    std::string text() const;

private:
    struct Sums {
        double dot = 0, found = 0, expected = 0, error = 0;
        double found_sum = 0, expected_sum = 0, elements = 0;
        void add(double x, double y);
        double cosine() const;
        double variance() const;  // of what is expected, times the elements
        // Whether what is expected varies by more than bf16 rounds it.
        bool varies() const;
        double correlation_of_rest() const;  // of what differs from the means
        double correlation() const;          // of what hardly varies, the cosine
    };
    void add_rows(std::span<const float> found, std::span<const float> expected);
    bool has_scores() const;

    bool is_whole_, is_list_ = false, data_dependent_;
    float padding_;                    // behind the rows that there are
    size_t row_ = 1;                   // elements of one
    size_t channels_ = 1, inner_ = 1;  // of a channel, elements side by side
    std::vector<char> is_score_;       // per channel; empty where none is, or all are
    Sums all_, scores_;
    double same_ = 0, compared_ = 0;  // whole numbers
    size_t not_finite_ = 0, same_top_ = 0, samples_ = 0;
};

// Of the objects of a decoder: boxes with the same class, an IoU of 0.9, a score within 0.1, and
// with the same keypoints and mask where they have some.
class ObjectAgreement {
public:
    explicit ObjectAgreement(float threshold = 0) : threshold_(threshold) {}
    void add(const Decoded& found, const Decoded& expected);
    bool is_empty() const { return expected_ + found_ == 0; }
    double value() const;  // of the objects of both sides, those that the other has
    bool is_usual() const;
    size_t expected() const { return expected_; }
    size_t found_again() const { return found_again_; }

private:
    float threshold_;
    size_t expected_ = 0, found_again_ = 0;  // of the float model
    size_t found_ = 0, right_ = 0;           // of the int8 one
};

// Of a trial. Its agreement is that of the objects where there are some, else that of the least
// output; its excess that of the objects or of the output that misses most of what its kind can
// give.
compiler::Verdict verdict_of(std::span<const OutputAgreement> outputs,
                             const ObjectAgreement& objects);

}  // namespace vartml::tools
