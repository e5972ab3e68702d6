// Shared by the files of this target.
#ifndef GOOGLYPUFF_PICTURE_HPP
#define GOOGLYPUFF_PICTURE_HPP

#include "GooglyPuffVision.h"

#if __has_include(<opencv2/objdetect.hpp>)

#define GOOGLY_HAS_OPENCV 1

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

struct GooglyPicture {
  cv::Mat image;
};

bool prepareCascades();
int32_t findFaces(const GooglyPicture *picture, GooglyFace *faces, int32_t capacity);
void findEyes(const GooglyPicture *picture, GooglyFace *face);
void drawEyes(GooglyPicture *picture, const GooglyFace *face);

#endif

#endif
