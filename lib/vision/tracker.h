// SPDX-License-Identifier: Apache-2.0
// Where a box will be: a Kalman filter of constant velocity in continuous time.
#pragma once
#include <vartml/postprocess.h>

namespace vartml::vision {

// Centre and size, four numbers that move independently. Time passes in seconds; passing it at once
// or in parts is the same.
class BoxMotion {
public:
    explicit BoxMotion(const Detection& box);

    void pass(double seconds);
    void see(const Detection& box);
    // Size no longer changes until it is seen: what disappears does not go on shrinking.
    void hold_size();
    // The same in other pixels: `x` of them across and `y` down for each one before.
    void rescale(double x, double y);

    // Corners of the box `seconds` from now; sides of at least a pixel, score and class 0.
    Detection expected(double seconds = 0) const;

private:
    // A number, its velocity and their covariance.
    struct Axis {
        double x = 0, v = 0, xx = 0, xv = 0, vv = 0;
        void pass(double t, double noise);
        void see(double z, double noise);
        void rescale(double by);
    };
    double scale() const;  // mean side: noise is a share of it

    Axis cx_, cy_, w_, h_;
};

}  // namespace vartml::vision
