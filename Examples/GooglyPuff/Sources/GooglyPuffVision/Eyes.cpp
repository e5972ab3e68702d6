// Draws googly eyes: a shadow, a white disc with a rim, and a pupil off center.

#include "Picture.hpp"

#if GOOGLY_HAS_OPENCV

#include <algorithm>
#include <cmath>

namespace {

void drawDisc(cv::Mat &image, double x, double y, double radius, const cv::Scalar &color) {
  constexpr int bits = 8;
  const cv::Point middle(cvRound(x * (1 << bits)), cvRound(y * (1 << bits)));
  cv::circle(image, middle, cvRound(radius * (1 << bits)), color, cv::FILLED, cv::LINE_AA, bits);
}

void drawEye(cv::Mat &image, const GooglyEye &eye) {
  const double radius = std::max(eye.radius, 3.0);
  const cv::Rect around =
      cv::Rect(
          cvFloor(eye.x - radius * 1.5), cvFloor(eye.y - radius * 1.5), cvCeil(radius * 3), cvCeil(radius * 3)) &
      cv::Rect(0, 0, image.cols, image.rows);
  if (around.empty()) return;
  cv::Mat part = image(around);
  const double x = eye.x - around.x, y = eye.y - around.y;

  // A soft shadow below.
  cv::Mat shadow(part.size(), CV_32F, cv::Scalar(0)), darker;
  drawDisc(shadow, x + radius * 0.06, y + radius * 0.14, radius, cv::Scalar(0.55));
  cv::GaussianBlur(shadow, shadow, cv::Size(), std::max(1.0, radius * 0.12));
  cv::Mat planes[3];
  cv::split(part, planes);
  for (cv::Mat &plane : planes) {
    plane.convertTo(darker, CV_32F);
    darker = darker.mul(1.0 - shadow);
    darker.convertTo(plane, CV_8U);
  }
  cv::merge(planes, 3, part);

  drawDisc(part, x, y, radius, cv::Scalar(120, 116, 112));
  drawDisc(part, x, y, radius * 0.95, cv::Scalar(255, 255, 255));
  // Derived from the place: stable for an eye, and different for two eyes of a face.
  const double angle = std::fmod(eye.x * 0.731 + eye.y * 0.417 + radius, 2 * CV_PI);
  const double pupil = radius * 0.52;
  const double pupilX = x + std::cos(angle) * radius * 0.36, pupilY = y + std::sin(angle) * radius * 0.36;
  drawDisc(part, pupilX, pupilY, pupil, cv::Scalar(20, 16, 16));
  drawDisc(part, pupilX - pupil * 0.34, pupilY - pupil * 0.38, pupil * 0.22, cv::Scalar(255, 255, 255));
}

}  // namespace

void drawEyes(GooglyPicture *picture, const GooglyFace *face) {
  try {
    for (const GooglyEye &eye : face->eyes) drawEye(picture->image, eye);
  } catch (const std::exception &) {
    // A face without eyes is better than no picture.
  }
}

#endif
