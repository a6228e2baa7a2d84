// Convolution straight from its definition: takes any kernel, stride, padding, dilation, group and
// channel count, in LINEAR or HWC8. A thread makes `kBundle` outputs of one pixel, all of one
// group.
//
// Weights come as [bundle, channel, tap, kBundle] for LINEAR and [bundle, tap, channel, kBundle]
// for HWC8, in the element type; the bias in FP32, filled up to whole bundles.
#pragma once

#include "cbr/geometry.cuh"

namespace trtplug {

template <class Element, int kCount>
struct __align__(sizeof(Element) * kCount) Bundle {
  Element elements[kCount];
};

template <class Site, int kBundle, bool kLinear>
class Direct {
 public:
  using Element = typename Site::Element;
  using Weights = Bundle<Element, kBundle>;

  static constexpr int kGroupChannels = Site::kChannels / Site::kGroups;
  static constexpr int kGroupOutputs = Site::kOutputs / Site::kGroups;
  static constexpr int kTaps = Site::kKernelH * Site::kKernelW;
  static constexpr int kPixelIn = padded(Site::kChannels);
  static constexpr int kPixelOut = padded(Site::kOutputs);

  static_assert(Site::kGroups == 1 || kGroupOutputs % kBundle == 0, "a bundle is of one group");
  static_assert(kLinear || 8 % kBundle == 0, "bundles fill a chunk");

  static __device__ __forceinline__ void run(const Element* __restrict__ x,
                                             const Weights* __restrict__ weights,
                                             const float* __restrict__ bias,
                                             const Element* __restrict__ residual,
                                             Element* __restrict__ y, const Extents& at) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= at.batch * at.rows * at.columns) {
      return;
    }
    const int first = blockIdx.y * kBundle;
    const Pixel pixel = pixel_at<Site>(index, at);
    float sums[kBundle];
#pragma unroll
    for (int o = 0; o < kBundle; ++o) {
      sums[o] = 0.0f;
    }
    // In HWC8 the last bundles may be padding.
    if (first < Site::kOutputs) {
      const int channel = Site::kGroups == 1 ? 0 : first / kGroupOutputs * kGroupChannels;
      const Weights* from = weights + static_cast<long long>(blockIdx.y) * kGroupChannels * kTaps;
      add_window(sums, x, from, pixel, channel, at);
#pragma unroll
      for (int o = 0; o < kBundle; ++o) {
        sums[o] += __ldg(bias + first + o);
      }
    }
    write(sums, residual, y, pixel, index, first, at);
  }

 private:
  static __device__ __forceinline__ void add_window(float (&sums)[kBundle], const Element* x,
                                                    const Weights* weights, const Pixel& pixel,
                                                    int channel, const Extents& at) {
    if (kLinear) {
      const long long plane = static_cast<long long>(at.height) * at.width;
      x += (static_cast<long long>(pixel.image) * Site::kChannels + channel) * plane;
#pragma unroll 1
      for (int c = 0; c < kGroupChannels; ++c) {
        each_tap(pixel, at, [&](int tap, long long place) {
          add(sums, x[c * plane + place], weights[c * kTaps + tap]);
        });
      }
    } else {
      x += static_cast<long long>(pixel.image) * at.height * at.width * kPixelIn + channel;
      each_tap(pixel, at, [&](int tap, long long place) {
#pragma unroll 4
        for (int c = 0; c < kGroupChannels; ++c) {
          add(sums, x[place * kPixelIn + c], weights[tap * kGroupChannels + c]);
        }
      });
    }
  }

  // Calls `take(tap, row * width + column)` for each tap inside the image.
  template <class Take>
  static __device__ __forceinline__ void each_tap(const Pixel& pixel, const Extents& at,
                                                  Take take) {
#pragma unroll 1
    for (int r = 0; r < Site::kKernelH; ++r) {
      const int row = pixel.top + r * Site::kDilationH;
      if (static_cast<unsigned>(row) < static_cast<unsigned>(at.height)) {
#pragma unroll
        for (int s = 0; s < Site::kKernelW; ++s) {
          const int column = pixel.left + s * Site::kDilationW;
          if (static_cast<unsigned>(column) < static_cast<unsigned>(at.width)) {
            take(r * Site::kKernelW + s, static_cast<long long>(row) * at.width + column);
          }
        }
      }
    }
  }

  static __device__ __forceinline__ void add(float (&sums)[kBundle], Element x,
                                             const Weights& weights) {
#pragma unroll
    for (int o = 0; o < kBundle; ++o) {
      sums[o] += to_float(x) * to_float(weights.elements[o]);
    }
  }

  static __device__ __forceinline__ void write(const float (&sums)[kBundle],
                                               const Element* residual, Element* y,
                                               const Pixel& pixel, int index, int first,
                                               const Extents& at) {
    const ActivationValues values = Site::values();
    const long long area = static_cast<long long>(at.rows) * at.columns;
    Bundle<Element, kBundle> out;
#pragma unroll
    for (int o = 0; o < kBundle; ++o) {
      const int k = first + o;
      const long long offset = place_of(k, pixel, index, area, at);
      out.elements[o] = from_float<Element>(0.0f);
      if (k < Site::kOutputs) {
        const float old = Site::kResidual == Residual::kNone ? 0.0f : to_float(residual[offset]);
        out.elements[o] =
            from_float<Element>(finish<Site::kActivation, Site::kResidual>(sums[o], old, values));
        if (kLinear) {
          y[offset] = out.elements[o];
        }
      }
    }
    if (!kLinear) {
      *reinterpret_cast<Bundle<Element, kBundle>*>(y + place_of(first, pixel, index, area, at)) =
          out;
    }
  }

  // Offset of output channel `k` of this thread's pixel.
  static __device__ __forceinline__ long long place_of(int k, const Pixel& pixel, int index,
                                                       long long area, const Extents& at) {
    if (!kLinear) {
      return static_cast<long long>(index) * kPixelOut + k;
    }
    return (static_cast<long long>(pixel.image) * Site::kOutputs + k) * area +
           static_cast<long long>(pixel.row) * at.columns + pixel.column;
  }
};

}  // namespace trtplug
