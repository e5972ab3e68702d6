// What the photo app needs of OpenCV, as functions of C. Each may be called on any thread; a picture, on one at a time.
#ifndef GOOGLYPUFF_VISION_H
#define GOOGLYPUFF_VISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
extern "C" {
#endif

/// A decoded picture.
typedef struct GooglyPicture GooglyPicture;

/// An eye: its middle and its radius, in pixels.
typedef struct {
  double x, y, radius;
} GooglyEye;

/// A face: the square around it, and where its eyes are.
typedef struct {
  int32_t x, y, side;
  GooglyEye eyes[2];
} GooglyFace;

/// Takes the bytes of an encoded picture; they are the caller's only during the call.
typedef void (*GooglyOutput)(void *context, const uint8_t *bytes, size_t count);

typedef struct {
  /// Reads the descriptions of faces and eyes, once. False if OpenCV's data is not installed.
  bool (*prepare)(void);

  /// Decodes a JPEG, PNG or WebP, upright, and scales it down until its longer side has at most `side` pixels.
  /// `divisor` is 1, 2, 4 or 8: a JPEG is decoded at that fraction of its size, which saves memory.
  /// NULL if it cannot be decoded.
  GooglyPicture *_Nullable (*_Nonnull decode)(const uint8_t *bytes, size_t count, int32_t divisor, int32_t side);
  void (*release)(GooglyPicture *picture);
  int32_t (*width)(const GooglyPicture *picture);
  int32_t (*height)(const GooglyPicture *picture);

  /// Finds at most `capacity` faces, and returns how many. Their eyes are still unknown.
  int32_t (*find_faces)(const GooglyPicture *picture, GooglyFace *faces, int32_t capacity);
  /// Finds the eyes of a face. An eye that cannot be made out is put where faces have one.
  void (*find_eyes)(const GooglyPicture *picture, GooglyFace *face);
  /// Draws googly eyes over those of the face.
  void (*draw_eyes)(GooglyPicture *picture, const GooglyFace *face);

  /// Encodes the picture as JPEG, scaled down until its shorter side has at most `shorter` pixels (0: as it is).
  bool (*encode)(
      const GooglyPicture *picture, int32_t shorter, int32_t quality, void *context, GooglyOutput output);
} GooglyVision;

/// The functions, or NULL if this was built on a machine without OpenCV.
const GooglyVision *_Nullable googly_vision(void);

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif
