// What every CBR kernel knows of its convolution. A `Site` is generated for each kernel: all that
// is fixed is a constant in it, and only batch, height and width may come as arguments (`Extents`).
//
//   struct Site {
//     using Element = Half;
//     static constexpr int kChannels, kOutputs, kGroups, kKernelH, kKernelW, kStrideH, kStrideW,
//         kPadTop, kPadLeft, kPadBottom, kPadRight, kDilationH, kDilationW;
//     static constexpr Activation kActivation;  static constexpr Residual kResidual;
//     static ActivationValues values();
//   };
#pragma once

#include "common/activation.cuh"
#include "common/copy.cuh"
#include "common/dtype.cuh"

namespace trtplug {

// Sizes of the input and of the output.
struct Extents {
  int batch;
  int height;
  int width;
  int rows;
  int columns;
};

template <class Site>
__device__ __forceinline__ Extents extents_of(int batch, int height, int width) {
  const int reach_h =
      Site::kPadTop + Site::kPadBottom - Site::kDilationH * (Site::kKernelH - 1) - 1;
  const int reach_w =
      Site::kPadLeft + Site::kPadRight - Site::kDilationW * (Site::kKernelW - 1) - 1;
  return {batch, height, width, (height + reach_h) / Site::kStrideH + 1,
          (width + reach_w) / Site::kStrideW + 1};
}

// An output pixel: its image, and the input pixel under the window's first tap (often outside).
struct Pixel {
  int image;
  int row;
  int column;
  int top;
  int left;
};

template <class Site>
__device__ __forceinline__ Pixel pixel_at(int index, const Extents& at) {
  const int area = at.rows * at.columns;
  const int image = index / area;
  const int rest = index - image * area;
  const int row = rest / at.columns;
  const int column = rest - row * at.columns;
  return {image, row, column, row * Site::kStrideH - Site::kPadTop,
          column * Site::kStrideW - Site::kPadLeft};
}

// Bit r * kKernelW + s: whether tap (r, s) of the pixel's window falls into the image.
template <class Site>
__device__ __forceinline__ unsigned long long taps_inside(const Pixel& pixel, const Extents& at) {
  unsigned across = 0;
#pragma unroll
  for (int s = 0; s < Site::kKernelW; ++s) {
    const int column = pixel.left + s * Site::kDilationW;
    across |= (static_cast<unsigned>(column) < static_cast<unsigned>(at.width) ? 1u : 0u) << s;
  }
  unsigned long long all = 0;
#pragma unroll
  for (int r = 0; r < Site::kKernelH; ++r) {
    const int row = pixel.top + r * Site::kDilationH;
    if (static_cast<unsigned>(row) < static_cast<unsigned>(at.height)) {
      all |= static_cast<unsigned long long>(across) << (r * Site::kKernelW);
    }
  }
  return all;
}

// What holds those bits: 32 where they are enough, for the test of a tap is then one instruction.
template <bool kNarrow, class Dummy = void>
struct MaskType {
  using Type = unsigned long long;
};
template <class Dummy>
struct MaskType<true, Dummy> {
  using Type = unsigned;
};
template <bool kNarrow>
using TapMask = typename MaskType<kNarrow>::Type;

// Elements that a pixel takes in HWC8: its channels, filled up to a multiple of 8.
__host__ __device__ constexpr int padded(int channels) {
  return divide_up(channels, 8) * 8;
}

}  // namespace trtplug
