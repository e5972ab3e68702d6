// Finds faces and eyes with the cascades of Debian's opencv-data.

#include "Picture.hpp"

#if GOOGLY_HAS_OPENCV

#include <opencv2/objdetect.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Cascades {
  cv::CascadeClassifier face, eye, left, right;

  bool load() {
    const std::string folder = "/usr/share/opencv4/haarcascades/haarcascade_";
    // `left` finds the person's left eye, which is on the right of the picture.
    return face.load(folder + "frontalface_alt2.xml") && eye.load(folder + "eye.xml") &&
           left.load(folder + "lefteye_2splits.xml") && right.load(folder + "righteye_2splits.xml");
  }
};

std::mutex mutex;
std::vector<std::unique_ptr<Cascades>> idle;  // GUARDED BY `mutex`.

/// Cascades for the calling thread, which can be used by one thread at a time. They return to the pool with the last
/// reference: loading them takes longer than a search.
std::shared_ptr<Cascades> borrowCascades() {
  std::unique_ptr<Cascades> cascades;
  {
    const std::lock_guard<std::mutex> guard(mutex);
    if (!idle.empty()) {
      cascades = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!cascades) {
    cascades = std::make_unique<Cascades>();
    if (!cascades->load()) throw std::runtime_error("opencv-data is missing");
  }
  return std::shared_ptr<Cascades>(cascades.release(), [](Cascades *returned) {
    const std::lock_guard<std::mutex> guard(mutex);
    idle.emplace_back(returned);
  });
}

/// Where eyes are expected, as fractions of the face's side.
constexpr double eyeX[2] = {0.30, 0.70}, eyeY = 0.37, eyeRadius = 0.17, tolerance = 0.12;

/// Sets `eye` to the candidate nearest to the expected place, if one is within the tolerance.
bool nearest(
    const std::vector<cv::Rect> &candidates, const cv::Rect &area, const GooglyFace &face, int which,
    GooglyEye &eye) {
  const double expectedX = face.x + eyeX[which] * face.side, expectedY = face.y + eyeY * face.side;
  double best = tolerance * face.side;
  bool found = false;
  for (const cv::Rect &candidate : candidates) {
    const double x = area.x + candidate.x + candidate.width / 2.0;
    const double y = area.y + candidate.y + candidate.height / 2.0;
    const double distance = std::hypot(x - expectedX, y - expectedY);
    if (distance >= best) continue;
    best = distance;
    eye.x = x;
    eye.y = y;
    found = true;
  }
  return found;
}

}  // namespace

bool prepareCascades() {
  try {
    borrowCascades();
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

int32_t findFaces(const GooglyPicture *picture, GooglyFace *faces, int32_t capacity) {
  try {
    cv::Mat gray;
    cv::cvtColor(picture->image, gray, cv::COLOR_BGR2GRAY);
    // The time grows with the number of pixels. Faces that vanish at this scale are too small for googly eyes.
    const double scale = std::min(1.0, 800.0 / std::max(gray.cols, gray.rows));
    if (scale < 1) cv::resize(gray, gray, cv::Size(), scale, scale, cv::INTER_AREA);
    cv::equalizeHist(gray, gray);
    std::vector<cv::Rect> found;
    const auto cascades = borrowCascades();
    cascades->face.detectMultiScale(gray, found, 1.1, 4, 0, cv::Size(28, 28));
    const int32_t count = std::min(capacity, static_cast<int32_t>(found.size()));
    for (int32_t i = 0; i < count; i++) {
      faces[i] = GooglyFace{
          cvRound(found[i].x / scale), cvRound(found[i].y / scale), cvRound(found[i].width / scale), {}};
    }
    return count;
  } catch (const std::exception &) {
    return 0;
  }
}

void findEyes(const GooglyPicture *picture, GooglyFace *face) {
  const double side = face->side;
  for (int which = 0; which < 2; which++) {
    face->eyes[which] = {face->x + eyeX[which] * side, face->y + eyeY * side, eyeRadius * side};
  }
  try {
    const cv::Rect bounds(0, 0, picture->image.cols, picture->image.rows);
    // Mouths and nostrils resemble eyes: search the upper part only.
    const cv::Rect area = cv::Rect(face->x, face->y, face->side, cvRound(side * 0.6)) & bounds;
    if (area.width < 16 || area.height < 16) return;
    cv::Mat gray;
    cv::cvtColor(picture->image(area), gray, cv::COLOR_BGR2GRAY);
    const double scale = std::min(1.0, 320.0 / area.width);
    if (scale < 1) cv::resize(gray, gray, cv::Size(), scale, scale, cv::INTER_AREA);
    cv::equalizeHist(gray, gray);

    const auto cascades = borrowCascades();
    bool found[2] = {false, false};
    cv::CascadeClassifier *first = &cascades->eye;
    for (int which = 0; which < 2; which++) {
      cv::CascadeClassifier *second = which == 0 ? &cascades->right : &cascades->left;
      for (cv::CascadeClassifier *classifier : {first, second}) {
        std::vector<cv::Rect> candidates;
        const int least = std::max(8, gray.cols / 8);
        classifier->detectMultiScale(
            gray, candidates, 1.08, 3, 0, cv::Size(least, least), cv::Size(gray.cols / 2, gray.cols / 2));
        for (cv::Rect &candidate : candidates) {
          candidate = cv::Rect(
              cvRound(candidate.x / scale), cvRound(candidate.y / scale), cvRound(candidate.width / scale),
              cvRound(candidate.height / scale));
        }
        if (nearest(candidates, area, *face, which, face->eyes[which])) {
          found[which] = true;
          break;
        }
      }
    }
    // If only one eye was found, mirror it.
    if (found[0] != found[1]) {
      const GooglyEye &known = face->eyes[found[0] ? 0 : 1];
      GooglyEye &other = face->eyes[found[0] ? 1 : 0];
      other.x = 2 * (face->x + side / 2) - known.x;
      other.y = known.y;
    }
  } catch (const std::exception &) {
    // Keep the expected places.
  }
}

#endif
