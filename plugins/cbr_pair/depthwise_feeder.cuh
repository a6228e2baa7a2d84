// Feeds the A operand of a pair's product: rows are output pixels, and 16-byte chunks of 8 channels
// are not loaded but made, by the depthwise convolution, its bias and its activation. A thread
// keeps one chunk column and several rows, so that each tap's weights are read once for all of
// them.
//
// Weights come as [tap, padded channels] in the element type. The bias comes in FP32: first the
// lower four channels of each chunk, then the upper four.
#pragma once

#include "cbr/depthwise.cuh"

namespace trtplug {

template <class Site, class Tile>
class DepthwiseFeeder {
 public:
  using Element = typename Site::Element;

  static constexpr int kChunks = Tile::kDepth / 8;
  static constexpr int kPixel = padded(Site::kChannels);
  static constexpr int kVectors = kPixel / 8;
  static constexpr int kTiles = divide_up(kVectors, kChunks);
  static constexpr int kTaps = Site::kKernelH * Site::kKernelW;
  static constexpr int kRowStep = Tile::kThreads / kChunks;
  static constexpr int kRows = Tile::kRows / kRowStep;
  // Taps written out after each other: more inputs under way than 12 do not fit the registers.
  static constexpr int kAtOnce = kRows * Site::kKernelW <= 12 ? Site::kKernelW : 12 / kRows;
  // Whether the last tile has chunks beyond the last channel.
  static constexpr bool kRagged = kVectors % kChunks != 0;

  static_assert(Site::kGroups == Site::kChannels && Site::kOutputs == Site::kChannels,
                "one filter for each channel");
  static_assert(Site::kResidual == Residual::kNone, "nothing is added between the convolutions");
  static_assert(Tile::kThreads % kChunks == 0 && kRowStep % 8 == 0,
                "the swizzle repeats by 8 rows");
  static_assert(Tile::kRows % kRowStep == 0, "whole rows for each thread");
  static_assert(kTaps <= 64 && Site::kKernelW <= 32, "the taps that are inside are bits");

  __device__ __forceinline__ DepthwiseFeeder(const Element* x, const Element* weights,
                                             const float* bias, const Extents& at, int first,
                                             int count) {
    const int chunk = threadIdx.x % kChunks;
    const int row = threadIdx.x / kChunks;
    to_ = swizzled<kChunks>(row, chunk);
    width_ = at.width;
    vector_ = chunk;
    weights_ = weights + chunk * 8;
    bias_ = bias + chunk * 4;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int index = first + row + i * kRowStep;
      const bool inside = index < count;
      const Pixel pixel = pixel_at<Site>(inside ? index : 0, at);
      const long long before =
          (static_cast<long long>(pixel.image) * at.height + pixel.top) * at.width + pixel.left;
      from_[i] = x + before * kPixel + chunk * 8;
      mask_[i] = 0;
      if (inside) {
        mask_[i] = taps_inside<Site>(pixel, at);
      }
    }
  }

  // Makes this thread's part of the current tile in `tile` in shared memory.
  __device__ __forceinline__ void fill(unsigned tile) const {
    if (kRagged && vector_ >= kVectors) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        store_shared(place(tile, i), make_uint4(0, 0, 0, 0));
      }
      return;
    }
    Chunk sums[kRows];
    start(sums);
    // Row by row: written out as a whole, loads come so early that registers spill.
#pragma unroll 1
    for (int r = 0; r < Site::kKernelH; ++r) {
      add_row(sums, r);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      store_shared(place(tile, i), finished(sums[i]));
    }
  }

  __device__ __forceinline__ void advance() {
    vector_ += kChunks;
    offset_ += Tile::kDepth;
  }

 private:
  __device__ __forceinline__ unsigned place(unsigned tile, int i) const {
    return tile + to_ + i * (kRowStep * Tile::kDepth * 2);
  }

  __device__ __forceinline__ void start(Chunk (&sums)[kRows]) const {
    const float4* biases = reinterpret_cast<const float4*>(bias_ + offset_ / 2);
    const float4 low = __ldg(biases);
    const float4 high = __ldg(biases + kVectors);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      sums[i] = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    }
  }

  __device__ __forceinline__ void add_row(Chunk (&sums)[kRows], int r) const {
    const Element* weights = settled(weights_ + (r * (Site::kKernelW * kPixel) + offset_));
    const long long along = r * (Site::kDilationH * kPixel) * width_ + offset_;
    const Element* lines[kRows];
    unsigned inside[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      lines[i] = settled(from_[i] + along);
      inside[i] = static_cast<unsigned>(mask_[i] >> (r * Site::kKernelW));
    }
#pragma unroll kAtOnce
    for (int s = 0; s < Site::kKernelW; ++s) {
      const Chunk weight = widen<Element>(load_global_16(weights + s * kPixel));
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        uint4 packed = make_uint4(0, 0, 0, 0);
        if (inside[i] >> s & 1) {
          packed = load_global_16(lines[i] + s * (Site::kDilationW * kPixel));
        }
        const Chunk x = widen<Element>(packed);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          sums[i].lanes[j] += x.lanes[j] * weight.lanes[j];
        }
      }
    }
  }

  // A pointer whose origin the compiler cannot see: it would compute it anew, in four instructions,
  // for each tap.
  static __device__ __forceinline__ const Element* settled(const Element* pointer) {
    asm("" : "+l"(pointer));
    return pointer;
  }

  // Past the last channel nothing is trusted: what padding lanes held would reach every output.
  __device__ __forceinline__ uint4 finished(const Chunk& sums) const {
    const ActivationValues values = Site::values();
    unsigned words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float pair[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int lane = j * 2 + k;
        pair[k] = activate<Site::kActivation>(sums.lanes[lane], values);
        if (Site::kChannels % 8 != 0 && vector_ * 8 + lane >= Site::kChannels) {
          pair[k] = 0.0f;
        }
      }
      words[j] = pack<Element>(pair[0], pair[1]);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const Element* from_[kRows];
  TapMask<(kTaps <= 32)> mask_[kRows];
  const Element* weights_;
  const float* bias_;
  unsigned to_;
  int width_;
  int vector_;
  int offset_ = 0;
};

}  // namespace trtplug
