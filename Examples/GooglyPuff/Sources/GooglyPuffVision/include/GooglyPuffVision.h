// The parts of OpenCV that the photo app uses, as C functions. They are thread-safe, except that a picture may be used by
// one thread at a time.
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

/// Receives the bytes of an encoded picture, which are valid during the call only.
typedef void (*GooglyOutput)(void *context, const uint8_t *bytes, size_t count);

typedef struct {
  /// Loads the cascades for faces and eyes. False if OpenCV's data is not installed.
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
  /// Finds the eyes of a face. An eye that is not found is set to the usual place.
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
