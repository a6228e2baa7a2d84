// Depthwise and pointwise convolution in one kernel: what the first makes goes to shared memory, as
// the A operand of the second's product, and never to global memory.
//
// A block makes one tile of kRows pixels by kColumns outputs; the channels between the two run in
// steps of kDepth through two stages, one in the product while the next is made. Blocks beside each
// other (outputs beyond kColumns) make the channels between anew, each for itself.
#pragma once

#include "cbr/igemm.cuh"
#include "cbr_pair/depthwise_feeder.cuh"

namespace trtplug {

// Weights of the second convolution, past the registers.
#if TRTPLUG_SM >= 80
template <class Weights, class Between>
__device__ __forceinline__ void bring(Asynchronous, Weights& weights, unsigned tile,
                                      Between between) {
  weights.copy(tile);
  commit_copies();
  between();
  wait_copies<0>();
}
#endif

// The same through registers, for sm_75.
template <class Weights, class Between>
__device__ __forceinline__ void bring(Staged, Weights& weights, unsigned tile, Between between) {
  weights.load();
  between();
  weights.store(tile);
}

template <class Tile, class Way, class Feeder, class Weights, class Product>
__device__ __forceinline__ void run_pair(unsigned shared, Feeder& feeder, Weights& weights,
                                         Product& product) {
  static_assert(Tile::kStages == 2, "one tile in work, one being filled");
  unsigned now = shared + Tile::kStageBytes;
  unsigned next = shared;
  // One loop for the first tile too, which has no product before it: what makes a tile is long, and
  // twice the code would take twice the time to compile.
#pragma unroll 1
  for (int i = 0; i < Feeder::kTiles; ++i) {
    bring(Way{}, weights, next, [&] {
      if (i > 0) {
        product.add(now);
      }
      feeder.fill(next);
    });
    feeder.advance();
    weights.advance();
    // All have finished `now`, which is filled next, and `next` is there for all.
    __syncthreads();
    const unsigned last = now;
    now = next;
    next = last;
  }
  product.add(now);
}

template <class First, class Second, class Tile, class Way>
__device__ __forceinline__ void depthwise_pointwise(
    const typename First::Element* x, const typename First::Element* between,
    const float* between_bias, const typename First::Element* weights, const float* bias,
    const typename First::Element* residual, typename First::Element* y, const Extents& at) {
  static_assert(Second::kChannels == First::kOutputs && Second::kGroups == 1 &&
                    Second::kKernelH * Second::kKernelW == 1 &&
                    Second::kStrideH * Second::kStrideW == 1,
                "the second takes every pixel of the first, all channels at once");
  __shared__ __align__(128) unsigned char memory[Tile::kBytes];
  const unsigned shared = shared_address(memory);
  const int count = at.batch * at.rows * at.columns;
  using Feeder = DepthwiseFeeder<First, Tile>;
  Feeder feeder(x, between, between_bias, at, blockIdx.x * Tile::kRows, count);
  WeightLoader<Second, Tile> from(weights, Feeder::kTiles);
  WarpProduct<typename First::Element, Tile> product;
  run_pair<Tile, Way>(shared, feeder, from, product);
  write_tile<Second, Tile>(shared, product, bias, residual, y, count);
}

}  // namespace trtplug
