// The functions of GooglyPuffVision.h over OpenCV: decoding, scaling, encoding. Faces.cpp finds faces, Eyes.cpp draws.
// No exception leaves them: failure is NULL, false or no face.

#include "Picture.hpp"

#if GOOGLY_HAS_OPENCV

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include <algorithm>
#include <vector>

namespace {

GooglyPicture *decode(const uint8_t *bytes, size_t count, int32_t divisor, int32_t side) {
  try {
    const int mode = divisor >= 8   ? cv::IMREAD_REDUCED_COLOR_8
                     : divisor >= 4 ? cv::IMREAD_REDUCED_COLOR_4
                     : divisor >= 2 ? cv::IMREAD_REDUCED_COLOR_2
                                    : cv::IMREAD_COLOR;
    const cv::Mat input(1, static_cast<int>(count), CV_8U, const_cast<uint8_t *>(bytes));
    cv::Mat image = cv::imdecode(input, mode);
    if (image.empty()) return nullptr;
    const double scale = static_cast<double>(side) / std::max(image.cols, image.rows);
    // No side may become zero.
    if (scale < 1) {
      const cv::Size size(std::max(1, cvRound(image.cols * scale)), std::max(1, cvRound(image.rows * scale)));
      cv::resize(image, image, size, 0, 0, cv::INTER_AREA);
    }
    return new GooglyPicture{image};
  } catch (const std::exception &) {
    return nullptr;
  }
}

bool encode(
    const GooglyPicture *picture, int32_t shorter, int32_t quality, void *context, GooglyOutput output) {
  try {
    cv::Mat image = picture->image;
    const double scale = static_cast<double>(shorter) / std::min(image.cols, image.rows);
    if (shorter > 0 && scale < 1) {
      const cv::Size size(std::max(1, cvRound(image.cols * scale)), std::max(1, cvRound(image.rows * scale)));
      cv::Mat smaller;
      cv::resize(image, smaller, size, 0, 0, cv::INTER_AREA);
      image = smaller;
    }
    std::vector<uint8_t> bytes;
    if (!cv::imencode(".jpg", image, bytes, {cv::IMWRITE_JPEG_QUALITY, quality})) return false;
    output(context, bytes.data(), bytes.size());
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

bool prepare() {
  // The program divides the work among its queues. OpenCV's own threads would compete with them.
  cv::setNumThreads(1);
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  return prepareCascades();
}

void release(GooglyPicture *picture) { delete picture; }
int32_t width(const GooglyPicture *picture) { return picture->image.cols; }
int32_t height(const GooglyPicture *picture) { return picture->image.rows; }

}  // namespace

const GooglyVision *googly_vision(void) {
  static const GooglyVision vision = {prepare,   decode,   release,  width, height,
                                      findFaces, findEyes, drawEyes, encode};
  return &vision;
}

#else

const GooglyVision *googly_vision(void) { return nullptr; }

#endif
