// Feeds the A operand of the implicit GEMM from HWC8: rows are output pixels, and 16-byte chunks of
// 8 channels run through the taps of the window. A thread keeps one chunk column and several rows.
#pragma once

#include "cbr/geometry.cuh"

namespace trtplug {

template <class Site, class Tile>
class VectorLoader {
 public:
  using Element = typename Site::Element;

  static constexpr int kChunks = Tile::kDepth / 8;
  static constexpr int kVectors =
      divide_up(Site::kGroups == 1 ? Site::kChannels : Site::kChannels / Site::kGroups, 8);
  static constexpr int kTaps = Site::kKernelH * Site::kKernelW;
  static constexpr int kTiles = divide_up(kTaps * kVectors, kChunks);
  static constexpr int kRowStep = Tile::kThreads / kChunks;
  static constexpr int kRows = Tile::kRows / kRowStep;
  static constexpr int kTailBytes = (Site::kChannels % 8) * 2;
  // Every thread of a tile stands in one tap, and none has to know which chunk is the last of it:
  // its place is a matter of counting.
  static constexpr bool kUniform = kVectors % kChunks == 0 && kTailBytes == 0;
  static constexpr bool kMasked = kTaps > 1 || !kUniform || Site::kPadTop || Site::kPadLeft ||
                                  Site::kPadBottom || Site::kPadRight;
  static constexpr int kPixel = padded(Site::kChannels);
  static constexpr bool kUnrolled = false;

  static_assert(Tile::kThreads % kChunks == 0 && kRowStep % 8 == 0,
                "the swizzle repeats by 8 rows");
  static_assert(Tile::kRows % kRowStep == 0, "whole rows for each thread");
  static_assert(kTaps + kChunks <= 64,
                "the taps that are inside, and those past the end, are bits");
  static_assert(Site::kGroups == 1 || Site::kChannels / Site::kGroups % 8 == 0,
                "a group begins with a whole chunk");

  __device__ __forceinline__ VectorLoader(const Element* x, const Extents& at, int first, int count,
                                          int group) {
    const int thread = threadIdx.x;
    const int chunk = thread % kChunks;
    const int row = thread / kChunks;
    to_ = swizzled<kChunks>(row, chunk);
    width_ = at.width;
    vector_ = kUniform ? 0 : chunk;
    const Element* from = x + group * (Site::kChannels / Site::kGroups) + chunk * 8;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      start(i, from, at, first + row + i * kRowStep, count);
    }
    settle();
  }

  // Copies this thread's part of the current tile to `tile` in shared memory.
#if TRTPLUG_SM >= 80
  __device__ __forceinline__ void copy(unsigned tile) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const unsigned to = tile + to_ + i * (kRowStep * Tile::kDepth * 2);
      if (kMasked || kTailBytes) {
        copy_async(to, from_[i] + offset_, bytes(i));
      } else {
        copy_async(to, from_[i] + offset_);
      }
    }
  }
#endif

  // The same in two halves, for hardware without asynchronous copies.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int wanted = bytes(i);
      staged_[i] = make_uint4(0, 0, 0, 0);
      if (wanted) {
        staged_[i] = load_global_16(from_[i] + offset_);
        if (kTailBytes) {
          staged_[i] = keep_bytes(staged_[i], wanted);
        }
      }
    }
  }

  __device__ __forceinline__ void store(unsigned tile) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      store_shared(tile + to_ + i * (kRowStep * Tile::kDepth * 2), staged_[i]);
    }
  }

  __device__ __forceinline__ void advance() {
    vector_ += kChunks;
    offset_ += Tile::kDepth;
    settle();
  }

 private:
  __device__ __forceinline__ void start(int i, const Element* from, const Extents& at, int index,
                                        int count) {
    const bool inside = index < count;
    const Pixel pixel = pixel_at<Site>(inside ? index : 0, at);
    const long long before =
        (static_cast<long long>(pixel.image) * at.height + pixel.top) * at.width + pixel.left;
    from_[i] = from + before * kPixel;
    mask_[i] = 0;
    if (inside) {
      mask_[i] = taps_inside<Site>(pixel, at);
    }
  }

  // Bytes of row i's chunk to take: 16, fewer at the last channels, none outside the image.
  __device__ __forceinline__ int bytes(int i) const {
    if (kMasked && !(mask_[i] >> tap_ & 1)) {
      return 0;
    }
    return kTailBytes && vector_ == kVectors - 1 ? kTailBytes : 16;
  }

  // Carries from channels over to taps.
  __device__ __forceinline__ void settle() {
#pragma unroll
    for (int i = 0; i < divide_up(kChunks, kVectors); ++i) {
      if (vector_ >= kVectors) {
        vector_ -= kVectors;
        tap_ += 1;
        column_ += 1;
        offset_ += Site::kDilationW * kPixel - kVectors * 8;
        if (column_ == Site::kKernelW) {
          column_ = 0;
          offset_ += (Site::kDilationH * width_ - Site::kKernelW * Site::kDilationW) * kPixel;
        }
      }
    }
  }

  const Element* from_[kRows];
  TapMask<(kTaps + kChunks <= 32)> mask_[kRows];
  uint4 staged_[kRows];
  unsigned to_;
  int width_;
  int vector_;
  int tap_ = 0;
  int column_ = 0;
  int offset_ = 0;
};

}  // namespace trtplug
