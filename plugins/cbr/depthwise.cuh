// Depthwise convolution in HWC8: a thread makes `kAcross` neighbouring outputs of 8 channels, and
// reads each input chunk once for all of them. Products and sums are FP32.
//
// Weights come as [tap, padded channels] in the element type, the bias in FP32.
#pragma once

#include "cbr/geometry.cuh"

namespace trtplug {

struct Chunk {
  float lanes[8];
};

template <class Element>
__device__ __forceinline__ Chunk widen(uint4 packed) {
  const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
  Chunk wide;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 both = unpack<Element>(words[i]);
    wide.lanes[i * 2] = both.x;
    wide.lanes[i * 2 + 1] = both.y;
  }
  return wide;
}

template <class Site, int kAcross>
class Depthwise {
 public:
  using Element = typename Site::Element;

  static constexpr int kPixel = padded(Site::kChannels);
  static constexpr int kVectors = kPixel / 8;
  // Input columns from the first output's first tap to the last output's last tap.
  static constexpr int kSpan =
      (kAcross - 1) * Site::kStrideW + (Site::kKernelW - 1) * Site::kDilationW + 1;

  static_assert(Site::kGroups == Site::kChannels && Site::kOutputs == Site::kChannels,
                "one filter for each channel");

  static __device__ __forceinline__ void run(const Element* x, const Element* weights,
                                             const float* bias, const Element* residual, Element* y,
                                             const Extents& at) {
    const int bundles = divide_up(at.columns, kAcross);
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= at.batch * at.rows * bundles * kVectors) {
      return;
    }
    const int vector = index % kVectors;
    const int place = index / kVectors;
    const int column = place % bundles * kAcross;
    const int line = place / bundles;  // image * rows + row
    const int row = line % at.rows;
    const int image = line / at.rows;
    const float4* biases = reinterpret_cast<const float4*>(bias) + vector * 2;
    const float4 low = __ldg(biases);
    const float4 high = __ldg(biases + 1);
    const Chunk start{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    Chunk sums[kAcross];
#pragma unroll
    for (int o = 0; o < kAcross; ++o) {
      sums[o] = start;
    }
    const int left = column * Site::kStrideW - Site::kPadLeft;
    const long long above = static_cast<long long>(image) * at.height;
#pragma unroll
    for (int r = 0; r < Site::kKernelH; ++r) {
      const int from = row * Site::kStrideH - Site::kPadTop + r * Site::kDilationH;
      if (static_cast<unsigned>(from) < static_cast<unsigned>(at.height)) {
        add_row(sums, x + ((above + from) * at.width + left) * kPixel + vector * 8,
                weights + r * Site::kKernelW * kPixel + vector * 8, left, at.width);
      }
    }
    const long long before = (static_cast<long long>(line) * at.columns + column) * kPixel;
#pragma unroll
    for (int o = 0; o < kAcross; ++o) {
      if (column + o < at.columns) {
        write(sums[o], residual, y, before + o * kPixel + vector * 8, vector * 8);
      }
    }
  }

 private:
  static __device__ __forceinline__ void add_row(Chunk (&sums)[kAcross], const Element* x,
                                                 const Element* weights, int left, int width) {
    Chunk taps[Site::kKernelW];
#pragma unroll
    for (int s = 0; s < Site::kKernelW; ++s) {
      taps[s] = widen<Element>(load_global_16(weights + s * kPixel));
    }
#pragma unroll
    for (int j = 0; j < kSpan; ++j) {
      if (is_read(j) && static_cast<unsigned>(left + j) < static_cast<unsigned>(width)) {
        add_column(sums, widen<Element>(load_global_16(x + j * kPixel)), taps, j);
      }
    }
  }

  // Whether any tap of any output falls on column j of the span.
  static __device__ __forceinline__ constexpr bool is_read(int j) {
    for (int s = 0; s < Site::kKernelW; ++s) {
      const int rest = j - s * Site::kDilationW;
      if (rest >= 0 && rest % Site::kStrideW == 0 && rest / Site::kStrideW < kAcross) {
        return true;
      }
    }
    return false;
  }

  static __device__ __forceinline__ void add_column(Chunk (&sums)[kAcross], const Chunk& x,
                                                    const Chunk (&taps)[Site::kKernelW], int j) {
#pragma unroll
    for (int s = 0; s < Site::kKernelW; ++s) {
#pragma unroll
      for (int o = 0; o < kAcross; ++o) {
        if (o * Site::kStrideW + s * Site::kDilationW == j) {
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            sums[o].lanes[i] += x.lanes[i] * taps[s].lanes[i];
          }
        }
      }
    }
  }

  static __device__ __forceinline__ void write(const Chunk& sums, const Element* residual,
                                               Element* y, long long offset, int channel) {
    Chunk old{};
    if (Site::kResidual != Residual::kNone) {
      old = widen<Element>(load_global_16(residual + offset));
    }
    const ActivationValues values = Site::values();
    float out[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = finish<Site::kActivation, Site::kResidual>(sums.lanes[i], old.lanes[i], values);
      if (Site::kChannels % 8 != 0 && channel + i >= Site::kChannels) {
        out[i] = 0.0f;
      }
    }
    store_global_16(y + offset,
                    make_uint4(pack<Element>(out[0], out[1]), pack<Element>(out[2], out[3]),
                               pack<Element>(out[4], out[5]), pack<Element>(out[6], out[7])));
  }
};

}  // namespace trtplug
