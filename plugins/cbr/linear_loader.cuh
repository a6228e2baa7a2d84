// Feeds the A operand of the implicit GEMM from LINEAR with few channels, the input of a network: a
// thread gathers one pixel's window element by element, in the order channel, row, column. All
// places are constants once the loop over tiles is unrolled.
#pragma once

#include "cbr/geometry.cuh"

namespace trtplug {

template <class Site, class Tile>
class LinearLoader {
 public:
  using Element = typename Site::Element;
  using Input = typename Site::Input;

  static constexpr int kTaps = Site::kKernelH * Site::kKernelW;
  static constexpr int kTerms = Site::kChannels * kTaps;
  static constexpr int kTiles = divide_up(kTerms, Tile::kDepth);
  static constexpr int kChunks = Tile::kDepth / 8;
  static constexpr bool kUnrolled = true;

  static_assert(Tile::kRows == Tile::kThreads, "one pixel for each thread");
  static_assert(Site::kGroups == 1, "a stem has one group");
  static_assert(Site::kKernelH <= 32 && Site::kKernelW <= 32, "a bit for each row and column");

  __device__ __forceinline__ LinearLoader(const Input* x, const Extents& at, int first, int count,
                                          int) {
    const int index = first + static_cast<int>(threadIdx.x);
    const bool inside = index < count;
    const Pixel pixel = pixel_at<Site>(inside ? index : 0, at);
    height_ = at.height;
    width_ = at.width;
    from_ = x + static_cast<long long>(pixel.image) * Site::kChannels * at.height * at.width +
            static_cast<long long>(pixel.top) * at.width + pixel.left;
#pragma unroll
    for (int r = 0; r < Site::kKernelH; ++r) {
      const int row = pixel.top + r * Site::kDilationH;
      const bool fits = static_cast<unsigned>(row) < static_cast<unsigned>(at.height);
      rows_ |= (inside && fits ? 1u : 0u) << r;
    }
#pragma unroll
    for (int s = 0; s < Site::kKernelW; ++s) {
      const int column = pixel.left + s * Site::kDilationW;
      const bool fits = static_cast<unsigned>(column) < static_cast<unsigned>(at.width);
      columns_ |= (fits ? 1u : 0u) << s;
    }
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < Tile::kDepth / 2; ++i) {
      const int term = tile_ * Tile::kDepth + i * 2;
      staged_[i] = join<Element>(element(term), element(term + 1));
    }
  }

  __device__ __forceinline__ void store(unsigned tile) const {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const unsigned* words = staged_ + chunk * 4;
      store_shared(tile + swizzled<kChunks>(threadIdx.x, chunk),
                   make_uint4(words[0], words[1], words[2], words[3]));
    }
  }

  __device__ __forceinline__ void advance() { tile_ += 1; }

 private:
  // 0 outside the image, and past the last term.
  __device__ __forceinline__ Input element(int term) const {
    const int channel = term / kTaps;
    const int r = term % kTaps / Site::kKernelW;
    const int s = term % Site::kKernelW;
    if (term >= kTerms) {
      return Input{};
    }
    const bool inside = (rows_ >> r & 1) && (columns_ >> s & 1);
    return load_global_or_zero(
        from_ + (channel * height_ + r * Site::kDilationH) * width_ + s * Site::kDilationW, inside);
  }

  const Input* from_;
  unsigned rows_ = 0;
  unsigned columns_ = 0;
  unsigned staged_[Tile::kDepth / 2];
  int height_;
  int width_;
  int tile_ = 0;
};

}  // namespace trtplug
