// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/motion.h"

#include <algorithm>

namespace vartml::vision {
namespace {

// Shares of the mean side. The first is that of SORT's successors (given: "Simple Online and
// Realtime Tracking with a Deep Association Metric", code), ours are the others, which say the same
// of seconds that it says of frames at 30 per second.
constexpr double seen = 1. / 20;       // standard deviation of a detected edge
constexpr double centre_velocity = 2;  // of an unknown velocity, per second
constexpr double size_velocity = 0.5;
constexpr double centre_change = 1;  // of the velocity, per second and root of a second
constexpr double size_change = 0.25;
constexpr double whole_pixels = 1. / 12;  // variance of rounding

double square(double value) {
    return value * value;
}

}  // namespace

void BoxMotion::Axis::pass(double t, double noise) {
    x += v * t;
    xx += 2 * t * xv + t * t * vv + noise * t * t * t / 3;
    xv += t * vv + noise * t * t / 2;
    vv += noise * t;
}

void BoxMotion::Axis::see(double z, double noise) {
    const double total = xx + noise, gain = xx / total, velocity_gain = xv / total;
    const double surprise = z - x;
    x += gain * surprise;
    v += velocity_gain * surprise;
    vv -= velocity_gain * xv;
    xv -= gain * xv;
    xx -= gain * xx;
}

BoxMotion::BoxMotion(const Detection& box) {
    cx_.x = (double{box.x0} + box.x1) / 2;
    cy_.x = (double{box.y0} + box.y1) / 2;
    w_.x = double{box.x1} - box.x0;
    h_.x = double{box.y1} - box.y0;
    const double s = scale();
    for (Axis* axis : {&cx_, &cy_, &w_, &h_}) axis->xx = square(seen * s) + whole_pixels;
    cx_.vv = cy_.vv = square(centre_velocity * s);
    w_.vv = h_.vv = square(size_velocity * s);
}

double BoxMotion::scale() const {
    return std::max(1., (w_.x + h_.x) / 2);
}

void BoxMotion::pass(double seconds) {
    const double s = scale();
    for (Axis* axis : {&cx_, &cy_}) axis->pass(seconds, square(centre_change * s));
    for (Axis* axis : {&w_, &h_}) axis->pass(seconds, square(size_change * s));
}

void BoxMotion::see(const Detection& box) {
    const double noise = square(seen * scale()) + whole_pixels;
    cx_.see((double{box.x0} + box.x1) / 2, noise);
    cy_.see((double{box.y0} + box.y1) / 2, noise);
    w_.see(double{box.x1} - box.x0, noise);
    h_.see(double{box.y1} - box.y0, noise);
}

void BoxMotion::hold_size() {
    w_.v = h_.v = 0;
}

Detection BoxMotion::expected(double seconds) const {
    const double x = cx_.x + cx_.v * seconds, y = cy_.x + cy_.v * seconds;
    const double w = std::max(1., w_.x + w_.v * seconds), h = std::max(1., h_.x + h_.v * seconds);
    return {.x0 = static_cast<float>(x - w / 2),
            .y0 = static_cast<float>(y - h / 2),
            .x1 = static_cast<float>(x + w / 2),
            .y1 = static_cast<float>(y + h / 2)};
}

}  // namespace vartml::vision
